import { describe, expect, it } from 'vitest';
import type { Machine } from '../../../common/elf/elf.ts';
import { HOTSPOT, HOTSPOT_HEAP, HotspotCode } from '../../records/records.gen.ts';
import { NameCache, UnsupportedRuntime } from '../contract.ts';
import { cookieOf32Bits } from '../cookie.ts';
import { BASE, encodeUnsigned5, FakeJvm } from './fake-jvm.ts';
import { hotspot } from './plugin.ts';

const HEAPS = [
  [0x7e00_0000_0000, 0x7e00_1000_0000],
  [0x7e00_2000_0000, 0x7e00_3000_0000],
] as const;

const attach = (jvm: FakeJvm, machine: Machine = 'x86_64') =>
  hotspot.attach!(jvm, BASE, { major: jvm.major, machine, symbols: jvm.symbols });
const started = (major: 17 | 25): FakeJvm => {
  const jvm = new FakeJvm(major);
  jvm.describe(jvm.heaps(HEAPS));
  return jvm;
};

describe.each([17, 25] as const)('JDK %i', (major) => {
  it('is attached to once its heaps are there', () => {
    const jvm = new FakeJvm(major);
    expect(attach(jvm)).toBeUndefined();
    jvm.describe(0);
    expect(attach(jvm)).toBeUndefined();
    jvm.symbol('structStride', 0);
    expect(attach(jvm)).toBeUndefined();
    jvm.describe(jvm.heaps([HEAPS[0], [0, 0]]));
    expect(attach(jvm)).toBeUndefined();
    jvm.describe(jvm.heaps(HEAPS));
    const entry = Buffer.from(attach(jvm)!.entry);
    expect(entry.readUInt8(HOTSPOT.heapCount)).toBe(2);
    expect(entry.readUInt8(HOTSPOT.segmentShift)).toBe(7);
    expect(entry.readUInt8(HOTSPOT.hasCodeOffset)).toBe(major === 25 ? 1 : 0);
    expect(entry.readUInt8(HOTSPOT.hasShortComplete)).toBe(major === 25 ? 1 : 0);
    const second = HOTSPOT.heaps + HOTSPOT_HEAP.bytes;
    expect(entry.readBigUInt64LE(second + HOTSPOT_HEAP.start)).toBe(BigInt(HEAPS[1][0]));
    expect(entry.readBigUInt64LE(second + HOTSPOT_HEAP.length)).toBe(0x1000_0000n);
  });

  it('says where frames of the processor differ', () => {
    const jvm = started(major);
    const [amd64, arm64] = (['x86_64', 'aarch64'] as const).map((machine) => attach(jvm, machine)!.entry);
    expect([amd64![HOTSPOT.bcpSlot], amd64![HOTSPOT.leavesBreadcrumbs]]).toEqual([8, 0]);
    expect([arm64![HOTSPOT.bcpSlot], arm64![HOTSPOT.leavesBreadcrumbs]]).toEqual([9, major === 17 ? 1 : 0]);
  });

  it('names interpreted methods with file and line', () => {
    const jvm = started(major);
    // index 0 is line 10, index 3 line 11, from index 6 on line 510
    const far = [0xff, ...encodeUnsigned5(6, major), ...encodeUnsigned5(998, major)];
    const lines = [(0 << 3) | 7, (0 << 3) | 3, (3 << 3) | 1, ...far];
    const method = jvm.method('put', { className: 'java/util/HashMap', file: 'HashMap.java', lines });
    const { facts } = attach(jvm)!;
    const nameAt = (index: number) => nameInterpreted(jvm, facts, method, index);
    expect(nameAt(3)).toMatchObject({ name: 'java.util.HashMap.put', file: 'HashMap.java', line: 11 });
    expect(nameAt(5)).toMatchObject({ line: 11 });
    expect(nameAt(7)).toMatchObject({ line: 510 });
    expect(nameAt(65_535)).toMatchObject({ line: 7, startLine: 7 });
  });

  it('expands methods that were inlined, by the next counter that is told of', () => {
    const jvm = started(major);
    const nmethod = compiled(jvm);
    const { facts } = attach(jvm)!;
    const names = (offset: number) => {
      const named = hotspot.nameFrame(compiledWords(nmethod, offset), facts, jvm, new NameCache());
      return Array.isArray(named) ? named.map(({ name }) => name) : named;
    };
    expect(names(0x10)).toEqual(['Chain.leaf', 'Chain.main']);
    expect(names(0x11)).toEqual(['Chain.main']);
    // behind the last one
    expect(names(0x500)).toEqual(['Chain.main']);
  });

  it('takes no other compilation for the one that was sampled', () => {
    const jvm = started(major);
    const nmethod = compiled(jvm);
    const { facts } = attach(jvm)!;
    const words = { ...compiledWords(nmethod, 0x10), low: 78 };
    expect(hotspot.nameFrame(words, facts, jvm, new NameCache())).toBe('replaced');
  });

  it('says what stubs are called', () => {
    const jvm = started(major);
    const blob = jvm.reserve(400);
    const name = jvm.put(Buffer.from('StubRoutines (1)\0'));
    jvm.word(blob + jvm.field('CodeBlob._name'), name);
    const words = { operand: HotspotCode.STUB * 2 ** 48 + blob, low: name % 2 ** 32, high: 0 };
    const { facts } = attach(jvm)!;
    expect(hotspot.nameFrame(words, facts, jvm, new NameCache())).toMatchObject({
      name: '[jvm: StubRoutines (1)]',
    });
    expect(hotspot.nameFrame({ ...words, low: 1 }, facts, jvm, new NameCache())).toBe('replaced');
  });
});

describe('a process that says it is HotSpot', () => {
  const refusal = (change: (jvm: FakeJvm) => void): (() => unknown) => {
    const jvm = new FakeJvm(17);
    change(jvm);
    return () => attach(jvm);
  };
  const described = (change: (jvm: FakeJvm) => void) =>
    refusal((jvm) => {
      jvm.describe(jvm.heaps(HEAPS));
      change(jvm);
    });

  it.each<[string, () => unknown, RegExp]>([
    ['large entries', described((jvm) => jvm.symbol('structStride', 4096)), /have 4096 bytes/],
    ['members beside the entry', described((jvm) => jvm.symbol('structAddress', 48)), /lies at 48 of 48/],
    ['a table without end', described(endless), /more than 8192 entries/],
    ['a field outside its type', offset('Method._constMethod', 89), /Method::_constMethod at 89/],
    ['a field that BPF would not read', offset('nmethod._compile_id', 384, 1000), /at 384 of an nmethod/],
    ['one that is not aligned', offset('CodeBlob._name', 90), /at 90 of an nmethod/],
    ['a type of a megabyte', offset('nmethod', 1 << 20), /nmethod has 1048576 bytes/],
    ['a field less', refusal(without('ConstMethod._code_size')), /where it has ConstMethod::_code_size/],
    ['a size less', refusal(without('ConstantPool')), /how large a ConstantPool is/],
    ['17 heaps', refusal((jvm) => jvm.describe(jvm.heaps(Array(17).fill(HEAPS[0])))), /17 code heaps/],
    ['a heap that ends before it begins', refusal((jvm) => jvm.describe(jvm.heaps([[2, 1]]))), /from 2 to 1/],
  ])('is refused for %s', (_what, attachTo, message) => {
    expect(attachTo).toThrow(UnsupportedRuntime);
    expect(attachTo).toThrow(message);
  });

  function offset(name: string, value: number, typeBytes?: number): () => unknown {
    return refusal((jvm) => {
      jvm.offsets[name] = value;
      if (typeBytes) jvm.offsets['nmethod'] = typeBytes;
      jvm.describe(jvm.heaps(HEAPS));
    });
  }
});

describe('a method', () => {
  it.each<[string, (jvm: FakeJvm, method: number) => void, unknown]>([
    [
      'whose constants are nowhere',
      (jvm, method) => jvm.word(constOf(jvm, method) + 8, 2 ** 46),
      'unreadable',
    ],
    [
      'whose constants are not addresses',
      (jvm, method) => jvm.word(constOf(jvm, method) + 8, 2 ** 60),
      'malformed',
    ],
    ['without a name', (jvm, method) => jvm.short(constOf(jvm, method) + 34, 3), 'unreadable'],
  ])('%s has none', (_what, change, failure) => {
    const jvm = started(17);
    const method = jvm.method('put', { className: 'Map' });
    const { facts } = attach(jvm)!;
    change(jvm, method);
    expect(nameInterpreted(jvm, facts, method, 0)).toBe(failure);
  });

  it('with a name of 65,535 bytes costs 1,024', () => {
    const jvm = started(17);
    const method = jvm.method('x'.repeat(5000), { className: 'C' });
    const name = (nameInterpreted(jvm, attach(jvm)!.facts, method, 0) as { name: string }).name;
    expect(name).toBe(`C.${'x'.repeat(1024)}…`);
  });

  it('of a class that was made for a lambda is called alike in each run', () => {
    const jvm = started(25);
    const method = jvm.method('run', { className: 'Main$$Lambda+0x00007f2968401e80' });
    expect(nameInterpreted(jvm, attach(jvm)!.facts, method, 0)).toMatchObject({ name: 'Main$$Lambda.run' });
  });

  it('is read again where another one has taken its place', () => {
    const jvm = started(17);
    const [one, other] = [jvm.method('one', { className: 'C' }), jvm.method('other', { className: 'C' })];
    const { facts } = attach(jvm)!;
    const cache = new NameCache();
    expect(nameInterpreted(jvm, facts, one, 0, cache)).toMatchObject({ name: 'C.one' });
    const bytes = cache.bytes;
    jvm.word(one + 8, constOf(jvm, other));
    expect(nameInterpreted(jvm, facts, one, 0, cache)).toMatchObject({ name: 'C.other' });
    expect(cache.bytes).toBe(bytes + 2 * ('other'.length - 'one'.length));
  });
});

describe('a class that is unloaded', () => {
  const interpreted = (method: number) => HotspotCode.INTERPRETED * 2 ** 48 + method;

  it.each([17, 25] as const)('has no name in common with the next one at its place: JDK %i', (major) => {
    const jvm = started(major);
    const method = jvm.method('run', { className: 'Work01' });
    const { facts } = attach(jvm)!;
    const cache = new NameCache();
    const words = { operand: interpreted(method), low: cookieOf(jvm, method), high: 0 };
    expect(hotspot.nameFrame(words, facts, jvm, cache)).toMatchObject({ name: 'Work01.run' });
    jvm.rename(classNameOf(jvm, method), 'Work02');
    expect(hotspot.nameFrame(words, facts, jvm, cache)).toBe('replaced');
    const next = { ...words, low: cookieOf(jvm, method) };
    expect(next.low).not.toBe(words.low);
    expect(hotspot.nameFrame(next, facts, jvm, cache)).toMatchObject({ name: 'Work02.run' });
  });

  it('is known by its methods alone where the process has not come to its name', () => {
    const jvm = started(17);
    const method = jvm.method('run', { className: 'Work01' });
    const { facts } = attach(jvm)!;
    for (const known of [2, 3]) {
      const words = { operand: interpreted(method), low: cookieOf(jvm, method, known), high: 0 };
      expect(hotspot.nameFrame(words, facts, jvm, new NameCache())).toMatchObject({ name: 'Work01.run' });
    }
  });

  it('may have been inlined', () => {
    const jvm = started(25);
    const nmethod = compiled(jvm);
    const { facts } = attach(jvm)!;
    const cache = new NameCache();
    const names = () => hotspot.nameFrame(compiledWords(nmethod, 0x10), facts, jvm, cache);
    expect(names()).toMatchObject([{ name: 'Chain.leaf' }, { name: 'Chain.main' }]);
    for (const method of jvm.methods) jvm.rename(classNameOf(jvm, method), 'Train');
    expect(names()).toMatchObject([{ name: 'Train.leaf' }, { name: 'Train.main' }]);
  });
});

describe('scopes', () => {
  it('that lead to themselves are malformed', () => {
    const jvm = started(17);
    const nmethod = compiled(jvm, { scope: 8, caller: 8 });
    const words = compiledWords(nmethod, 0x10);
    expect(hotspot.nameFrame(words, attach(jvm)!.facts, jvm, new NameCache())).toBe('malformed');
  });
});

const without = (name: string) => (jvm: FakeJvm) => {
  delete jvm.offsets[name];
  jvm.describe(jvm.heaps(HEAPS));
};

/** No entry of it has no name. */
function endless(jvm: FakeJvm): void {
  const text = jvm.put(Buffer.from('Nothing\0'));
  const table = jvm.reserve(8200 * 48);
  for (let i = 0; i < 8200; i++) jvm.word(table + i * 48, text);
  jvm.symbol('structs', table);
}

function constOf(jvm: FakeJvm, method: number): number {
  const bytes = jvm.read(method + jvm.field('Method._constMethod'), 8)!;
  return Number(Buffer.from(bytes).readBigUInt64LE());
}

/** 0 where there is nothing. */
const wordAt = (jvm: FakeJvm, address: number): number => {
  const bytes = jvm.read(address, 8);
  return bytes ? Number(Buffer.from(bytes).readBigUInt64LE()) : 0;
};

const classNameOf = (jvm: FakeJvm, method: number): number => {
  const pool = wordAt(jvm, constOf(jvm, method) + jvm.field('ConstMethod._constants'));
  const klass = wordAt(jvm, pool + jvm.field('ConstantPool._pool_holder'));
  return wordAt(jvm, klass + jvm.field('Klass._name'));
};

/** As the unwinder makes it, which may read `known` words of it. */
function cookieOf(jvm: FakeJvm, method: number, known = 4): number {
  const [constMethod, symbol] = [constOf(jvm, method), classNameOf(jvm, method)];
  const sizes = Buffer.from(jvm.read(constMethod + jvm.field('ConstMethod._code_size'), 4)!).readUInt32LE();
  const random = BigInt(wordAt(jvm, symbol)) >> 16n;
  const words = [BigInt(constMethod), BigInt(sizes), BigInt(symbol), random];
  return cookieOf32Bits(words.map((word, i) => (i < known ? word : 0n)));
}

function nameInterpreted(
  jvm: FakeJvm,
  facts: unknown,
  method: number,
  index: number,
  cache = new NameCache(),
): unknown {
  const low = cookieOf(jvm, method);
  const operand = HotspotCode.INTERPRETED * 2 ** 48 + method;
  return hotspot.nameFrame({ operand, low, high: index }, facts, jvm, cache);
}

const compiledWords = (nmethod: number, offset: number) => ({
  operand: HotspotCode.COMPILED * 2 ** 48 + nmethod,
  low: 77,
  high: offset,
});

/** An nmethod of Chain.main: at 0x10 in leaf, which was inlined, at 0x20 in itself. */
function compiled(jvm: FakeJvm, { scope = 8, caller = 1 } = {}): number {
  const numbers = (...values: number[]) => values.flatMap((value) => encodeUnsigned5(value, jvm.major));
  const leaf = jvm.method('leaf', { className: 'Chain' });
  const main = jvm.method('main', { className: 'Chain' });
  const scopes = Buffer.alloc(64);
  scopes.set(numbers(0, 1, 3), 1); // main, at index 2
  scopes.set(numbers(caller, 2, 1), scope); // leaf, at its first
  const nmethod = jvm.reserve(400);
  const data = jvm.put(scopes);
  const pcs = Buffer.alloc(4 * 16);
  const entries = [
    [-1, 0],
    [0x10, scope],
    [0x20, 1],
    [0x1000, 0],
  ] as const;
  for (const [i, [pc, at]] of entries.entries()) {
    pcs.writeInt32LE(pc, i * 16);
    pcs.writeInt32LE(at, i * 16 + 4);
  }
  const table = jvm.put(pcs);
  const metadata = jvm.reserve(16);
  jvm.word(metadata, main);
  jvm.word(metadata + 8, leaf);
  jvm.int(nmethod + jvm.field('nmethod._compile_id'), 77);
  if (jvm.major === 17) {
    jvm.word(nmethod + jvm.field('CompiledMethod._method'), main);
    jvm.word(nmethod + jvm.field('CompiledMethod._scopes_data_begin'), data);
    jvm.int(nmethod + jvm.field('nmethod._scopes_pcs_offset'), table - nmethod);
    jvm.int(nmethod + jvm.field('nmethod._dependencies_offset'), table + pcs.length - nmethod);
    jvm.int(nmethod + jvm.field('nmethod._metadata_offset'), metadata - nmethod);
    return nmethod;
  }
  // what the compiler does not change any more lies apart: counters, then scopes
  const immutable = jvm.put(Buffer.concat([pcs, scopes]));
  jvm.word(nmethod + jvm.field('nmethod._method'), main);
  jvm.word(nmethod + jvm.field('nmethod._immutable_data'), immutable);
  jvm.int(nmethod + jvm.field('nmethod._scopes_pcs_offset'), 0);
  jvm.int(nmethod + jvm.field('nmethod._scopes_data_offset'), pcs.length);
  jvm.word(nmethod + jvm.field('CodeBlob._mutable_data'), metadata - 24);
  jvm.int(nmethod + jvm.field('CodeBlob._relocation_size'), 24);
  return nmethod;
}
