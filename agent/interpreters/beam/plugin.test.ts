import { expect, test } from 'vitest';
import { BEAM } from '../../records/records.gen.ts';
import { NameCache, type ProcessMemory, UnsupportedRuntime } from '../contract.ts';
import type { BeamFile } from './detect-beam.ts';
import { beam } from './plugin.ts';

const BASE = 0x10000;
const BYTES = 1 << 16;
const MODULE_AT = BASE + 0x4000;
const CODE_AT = MODULE_AT + 0x200;
const COOKIE = 0x1234;

const FILE: BeamFile = {
  release: 25,
  machine: 'x86_64',
  data: { start: 0x1000, bytes: 0x800 },
  threadKey: 0x17f0,
  currentProcess: 0xa8,
  activeIndex: 0x17f8,
  dirty: { start: 0, bytes: 0 },
  atomTableName: 0x100,
  isMusl: false,
};

const atom = (i: number): number => i * 64 + 0x0b;

/** A VM with the module `fake` and its functions `first/1`, at line 7 of fake.erl, and `second/1`. */
class FakeVm implements ProcessMemory {
  readonly bytes = Buffer.alloc(BYTES);

  constructor() {
    this.words(BASE + 0x1040, [0x5000, 1, 4, 0x5000].map(absolute(1)));
    this.words(BASE + 0x1060, [0x5000, 1, 4, 0x5000].map(absolute(1)));
    this.words(BASE + 0x1080, [0x5000, 1, 4, 0x5000].map(absolute(1)));
    this.words(BASE + 0x5000, [MODULE_AT, MODULE_AT + 0x1000]);
    this.words(BASE + 0x1200 + 64, [BASE + FILE.atomTableName]);
    this.words(BASE + 0x1200 + 120, [BASE + 0x6000]);
    this.words(BASE + 0x6000, [BASE + 0x6100]);
    for (const [i, name] of ['fake', 'first', 'second'].entries()) this.#atom(i, name);
    this.words(BASE + FILE.threadKey, [4]);
    this.words(MODULE_AT, [2]);
    this.words(MODULE_AT + 72, [BASE + 0x8000, BASE + 0x8200]);
    this.words(BASE + 0x8200, [COOKIE]);
    this.words(MODULE_AT + 96, [CODE_AT, CODE_AT + 0x100, CODE_AT + 0x200]);
    this.words(CODE_AT + 16, [atom(0), atom(1), 1]);
    this.words(CODE_AT + 0x110, [atom(0), atom(2), 1]);
    // its lines: of `first` at its begin and at 0x80
    this.words(BASE + 0x8000, [BASE + 0x8300, 4, BASE + 0x8400, BASE + 0x8500, BASE + 0x8510, BASE + 0x8510]);
    this.words(BASE + 0x8300, [BASE + 0x9001]);
    this.words(BASE + 0x8400, [7 * 2 ** 32 + 6]);
    this.words(BASE + 0x8500, [CODE_AT, CODE_AT + 0x80]);
    this.#text(BASE + 0x9000, 'fake.erl');
  }

  #atom(i: number, name: string): void {
    const at = BASE + 0x6400 + i * 0x40;
    this.words(BASE + 0x6100 + i * 8, [at]);
    this.words(at + 24, [name.length, at + 0x5000]);
    this.bytes.write(name, at + 0x5000 - BASE);
  }

  #text(at: number, text: string): void {
    [...text].forEach((character, i) => {
      const next = i === text.length - 1 ? 0x3b : at + (i + 1) * 16 + 1;
      this.words(at + i * 16, [character.codePointAt(0)! * 16 + 15, next]);
    });
  }

  words(at: number, values: number[]): void {
    for (const [i, value] of values.entries()) this.bytes.writeBigUInt64LE(BigInt(value), at - BASE + i * 8);
  }

  read(address: number, length: number): Uint8Array | undefined {
    const at = address - BASE;
    return at >= 0 && at + length <= BYTES ? this.bytes.subarray(at, at + length) : undefined;
  }

  attach(file: BeamFile = FILE): NonNullable<ReturnType<NonNullable<typeof beam.attach>>> {
    return beam.attach!(this, BASE, file)!;
  }

  name(offset: number, { cookie = COOKIE, module = MODULE_AT } = {}): unknown {
    const second = BigInt(module / 8) * 2n ** 19n + BigInt(cookie);
    const words = {
      operand: CODE_AT + offset,
      low: Number(second & 0xffffffffn),
      high: Number(second >> 32n),
    };
    return beam.nameFrame(words, this.attach().facts, this, new NameCache());
  }
}

class FakeVm24 extends FakeVm {
  constructor() {
    super();
    this.words(MODULE_AT + 80, [BASE + 0x8200, CODE_AT, CODE_AT + 0x100, CODE_AT + 0x200]);
    this.words(BASE + 0x8300, [atom(2)]);
    this.bytes.writeUInt32LE(2 ** 24 + 7, 0x8404);
  }

  override attach(): ReturnType<FakeVm['attach']> {
    return super.attach({ ...FILE, release: 24 });
  }
}

const absolute =
  (pointers: number) =>
  (value: number): number =>
    value >= 0x1000 * pointers ? BASE + value : value;

test('tables are found in the variables', () => {
  const { entry } = new FakeVm().attach();
  const view = Buffer.from(entry);
  expect(view.readBigUInt64LE(BEAM.ranges)).toBe(BigInt(BASE + 0x1040));
  expect(view.readBigUInt64LE(BEAM.atoms)).toBe(BigInt(BASE + 0x1200));
  expect(view.readUInt32LE(BEAM.threadKey)).toBe(4);
});

test('a function has its name, file, line and the line that it begins with; the last one, too', () => {
  const vm = new FakeVm();
  const place = { file: 'fake.erl', column: 0, startLine: 6 };
  expect(vm.name(0x30)).toEqual({ name: 'fake:first/1', line: 6, ...place });
  expect(vm.name(0x90)).toEqual({ name: 'fake:first/1', line: 7, ...place });
  expect(vm.name(0x1f0)).toEqual({ name: 'fake:second/1', file: '', line: 0, column: 0, startLine: 0 });
});

test('jumps to shared code behind the last function are not that function', () => {
  const vm = new FakeVm();
  for (const at of [0x1f4, 0x1fa]) vm.bytes.writeUInt16BE(0x40e9, CODE_AT - BASE + at);
  expect(vm.name(0x1f3)).toMatchObject({ name: 'fake:second/1' });
  expect(vm.name(0x1f4)).toMatchObject({ name: '[beam: shared code]' });
  expect(vm.name(0x1ff)).toMatchObject({ name: '[beam: shared code]' });
});

test('a module of OTP 24 names its own file by its name, and others by atoms', () => {
  const vm = new FakeVm24();
  expect(vm.name(0x30)).toMatchObject({ name: 'fake:first/1', file: 'fake.erl', line: 6 });
  expect(vm.name(0x90)).toMatchObject({ name: 'fake:first/1', file: 'second', line: 7 });
});

test('a file of OTP 24 that is not an atom is malformed', () => {
  const vm = new FakeVm24();
  vm.words(BASE + 0x8300, [3]);
  expect(vm.name(0x90)).toBe('malformed');
});

test('code of no module has a name of its own', () => {
  expect(new FakeVm().name(0, { module: 0, cookie: 0 })).toMatchObject({ name: '[beam: shared code]' });
});

test('a module that was loaded in the place of another has none', () => {
  expect(new FakeVm().name(0x30, { cookie: COOKIE + 1 })).toBe('replaced');
});

test.each([
  ['a module of endless functions', MODULE_AT, 2 ** 40],
  ['a function that has no atom', CODE_AT + 24, 3],
  ['an atom that is not there', CODE_AT + 24, atom(2 ** 40)],
  ['an endless atom', BASE + 0x6440 + 24, 0x7fff],
  ['endless parameters', CODE_AT + 32, 256],
  ['lines that end before they begin', BASE + 0x8020, BASE + 0x8400],
  ['endless lines', BASE + 0x8020, 2 ** 46],
  ['lines of no size', BASE + 0x8008, 3],
  ['a file that is not text', BASE + 0x9000, 2 ** 44],
])('%s is malformed', (_, at, value) => {
  const vm = new FakeVm();
  vm.attach();
  vm.words(at, [value]);
  if (at === MODULE_AT) vm.words(BASE + 0x5000, [BASE + 0xa000, BASE + 0xb000]);
  const named = (): unknown => vm.name(0x30);
  if (at === MODULE_AT) expect(named).toThrow(UnsupportedRuntime);
  else expect(named()).toBe('malformed');
});

test('a text in a circle is cut', () => {
  const vm = new FakeVm();
  vm.words(BASE + 0x9008, [BASE + 0x9001]);
  expect((vm.name(0x30) as { file: string }).file.length).toBeLessThanOrEqual(1024);
});

test('without tables it can not be attached to; without memory not yet', () => {
  const vm = new FakeVm();
  vm.words(BASE + 0x1060, [0]);
  expect(() => vm.attach()).toThrow(UnsupportedRuntime);
  expect(beam.attach!({ read: () => undefined }, BASE, FILE)).toBeUndefined();
});

/** Each of its variables is the name of the table of atoms, or a table of modules. */
class LyingVm extends FakeVm {
  reads = 0;

  constructor(words: number[]) {
    super();
    const every = FILE.data.bytes / 8 / words.length;
    this.words(BASE + FILE.data.start, Array.from({ length: every }, () => words).flat());
  }

  override read(address: number, length: number): Uint8Array | undefined {
    this.reads++;
    return super.read(address, length);
  }
}

test.each([
  ['tables of modules', [BASE + 0x7000, 1, 4, BASE + 0x7000]],
  ['names of the table of atoms', [BASE + FILE.atomTableName]],
])('of many %s only some are looked at', (_, words) => {
  const vm = new LyingVm(words);
  expect(() => vm.attach()).toThrow(UnsupportedRuntime);
  expect(vm.reads).toBeLessThan(100);
});
