import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { DOTNET, DotnetCode } from '../../records/records.gen.ts';
import { NameCache, UnsupportedRuntime } from '../contract.ts';
import { hashOfWords } from '../cookie.ts';
import { RuntimeMemory } from '../runtime-memory.ts';
import { BASE, FakeClr } from './fake-clr.ts';
import type { DotnetLayout } from './layout.ts';
import { dotnet } from './plugin.ts';
import { findSection } from './sections.ts';

const ASSEMBLY = readFileSync(join(import.meta.dirname, '../../../test/runtimes/dotnet/chain.dll'));
const CODE_AT = 2 ** 48;
/** Row of Known.Work.Spin. */
const ROW = 2;

/** A process of .NET 8 with one method that was compiled, and one image. */
function madeProcess() {
  const clr = new FakeClr();
  clr.int(BASE, 0x464c457f);
  const assembly = clr.put(ASSEMBLY);
  const text = ASSEMBLY.toString('latin1');
  const simpleName = assembly + text.indexOf('\0chain\0', text.indexOf('BSJB')) + 1;
  const module = clr.reserve(0x500);
  clr.word(module + 0x108, simpleName);
  const [assemblyFile, peImage] = [clr.reserve(64), clr.reserve(64)];
  clr.word(module + 0x110, assemblyFile);
  clr.word(assemblyFile + 8, peImage);
  clr.word(peImage + 16, clr.put(Buffer.from('/app/chain.dll\0', 'utf16le')));
  const methodTable = clr.reserve(128);
  clr.word(methodTable + 24, module);
  const chunk = clr.reserve(64);
  clr.word(chunk, methodTable);
  // the chunk's header has 24 bytes; this is its second method, 16 bytes behind the first
  const methodDesc = chunk + 24 + 16;
  clr.int(methodDesc, ROW | (2 << 16));
  const header = clr.reserve(64);
  clr.word(header + 24, methodDesc);
  // a place at 4, of IL 8
  clr.word(header, clr.put(Buffer.from('0003413902', 'hex')));
  const code = clr.reserve(64) + 16;
  clr.word(code - 8, header);
  const image = BASE + 0x40000;
  const ranges = clr.section(image, [image, image + 0x20000, 0, 0, module, 0]);
  const table = clr.reserve(16);
  clr.word(table, ranges);
  return { clr, code, methodDesc, methodTable, simpleName, module, image, table };
}

/** The same of .NET 6, whose sections are a list, and whose table counts from the file's address 0. */
function madeOldProcess() {
  const made = madeProcess();
  const { clr, module, simpleName, image, table } = made;
  clr.word(module + 8, simpleName);
  const [oldest, newest, first] = [clr.reserve(128), clr.reserve(128), clr.reserve(16)];
  clr.word(first, newest);
  clr.word(newest, image + 0x40000);
  clr.word(newest + 8, image + 0x50000);
  clr.word(newest + 24, oldest);
  clr.word(oldest, image);
  clr.word(oldest + 8, image + 0x20000);
  clr.word(oldest + 48, module);
  clr.word(table, 0);
  clr.int(table, first - BASE);
  return { ...made, first };
}

const entryOf = (clr: FakeClr, table: number, facts: object) =>
  dotnet.attach!(clr, table, {
    ...{ major: 8, start: BASE - table, codeEnd: 0x1000, dacTable: 0, descriptor: 0 },
    ...facts,
  });

const words = (kind: number, address: number, owner: number, offset = 5) => ({
  operand: kind * CODE_AT + address,
  low: Math.floor(owner / 8) % 2 ** 32,
  high: offset,
});

describe('the .NET plug-in', () => {
  it('attaches where the map of code is', () => {
    const { clr, table } = madeProcess();
    const entry = Buffer.from(entryOf(clr, table, {})!.entry);
    expect(entry.readUInt16LE(DOTNET.sectionHeap)).toBe(40);
    expect(entry.readUInt16LE(DOTNET.hasMapPointers)).toBe(0);
    expect(entryOf(clr, BASE + 0x90000, {})).toBeUndefined();
  });

  it('does not attach by the place of another mapping of its file', () => {
    const { clr, table } = madeProcess();
    expect(entryOf(clr, table, { start: BASE + 4096 - table })).toBeUndefined();
    const entry = Buffer.from(entryOf(clr, table, {})!.entry);
    expect(entry.readUInt32LE(DOTNET.codeEnd)).toBe(0x1000);
  });

  it("takes offsets from the process's description", () => {
    const { clr, table } = madeProcess();
    const text =
      '{"types":{"RangeSection":{"HeapList":[48,"pointer"],"Flags":-1}},"contracts":{"ExecutionManager":2}}';
    const descriptor = clr.describe(text, []) - table;
    const entry = Buffer.from(entryOf(clr, table, { major: 10, descriptor })!.entry);
    expect(entry.readUInt16LE(DOTNET.sectionHeap)).toBe(48);
    expect(entry.readUInt16LE(DOTNET.sectionFlags)).toBe(16);
    expect(entry.readUInt16LE(DOTNET.hasMapPointers)).toBe(1);
  });

  it.each(['', 'no JSON', '[]', '{"types":3}', `{"a":"${'x'.repeat(70_000)}"}`])(
    'lives with a description that is none: %.20s',
    (text) => {
      const { clr, table } = madeProcess();
      const descriptor = clr.describe(text, []) - table;
      expect(entryOf(clr, table, { descriptor })).toBeDefined();
      if (text === '{"types":3}') return;
      expect(() => entryOf(clr, table, { major: 10, descriptor }) ?? 'none').toThrow(UnsupportedRuntime);
    },
  );

  it('names a compiled method, until another one has its place', () => {
    const { clr, code, methodDesc, table } = madeProcess();
    const { facts } = entryOf(clr, table, {})!;
    const cache = new NameCache();
    const frame = words(DotnetCode.JITTED, code, methodDesc);
    expect(dotnet.nameFrame(frame, facts, clr, cache)).toMatchObject([
      { name: 'Known.Work.Spin', assembly: { file: '/app/chain.dll', row: ROW, ilOffset: 8 } },
    ]);
    expect(dotnet.nameFrame({ ...frame, low: frame.low + 1 }, facts, clr, cache)).toBe('replaced');
    expect(dotnet.nameFrame(words(DotnetCode.STUB, code, 0), facts, clr, cache)).toMatchObject({
      name: '[clr: stub]',
    });
  });

  it('tells the methods of an assembly from those of one that was unloaded', () => {
    const { clr, code, methodDesc, simpleName, table } = madeProcess();
    const { facts } = entryOf(clr, table, {})!;
    const cache = new NameCache();
    const cookie = (): number => {
      const at = simpleName - BASE - 16;
      const around = Array.from({ length: 6 }, (_, i) => clr.bytes.readBigUInt64LE(at + i * 8));
      return Number((hashOfWords([BigInt(methodDesc), BigInt(simpleName), ...around]) >> 3n) & 0xffff_ffffn);
    };
    const frame = { ...words(DotnetCode.JITTED, code, 0), low: cookie() };
    expect(dotnet.nameFrame(frame, facts, clr, cache)).toMatchObject([{ name: 'Known.Work.Spin' }]);
    // in its place there is one of another name, with a method of another name
    clr.bytes.write('train', simpleName - BASE, 'latin1');
    const spin = clr.bytes.indexOf('\0Spin\0', 0, 'latin1');
    clr.bytes.write('Spun', spin + 1, 'latin1');
    expect(dotnet.nameFrame(frame, facts, clr, cache)).toBe('replaced');
    const next = { ...frame, low: cookie() };
    expect(dotnet.nameFrame(next, facts, clr, cache)).toMatchObject([{ name: 'Known.Work.Spun' }]);
  });

  it('attaches to the list of .NET 6', () => {
    const { clr, table, first, image, module } = madeOldProcess();
    const { entry, facts } = entryOf(clr, table, { major: 6, start: BASE - table })!;
    expect(Number(Buffer.from(entry).readBigUInt64LE(DOTNET.ranges))).toBe(first);
    expect(Buffer.from(entry).readUInt16LE(DOTNET.hasList)).toBe(1);
    const find = (at: number) => findSection(new RuntimeMemory(clr), facts as DotnetLayout, at);
    expect(find(image + 64)).toEqual({ begin: image, module });
    expect(find(image + 0x30000)).toBeUndefined();
  });

  it('waits for .NET 6 to fill the table: until then its entry leads to the start of the file', () => {
    const { clr, table } = madeOldProcess();
    clr.word(BASE, 0x00010102_464c457f);
    clr.int(table, 0);
    expect(entryOf(clr, table, { major: 6, start: BASE - table })).toBeUndefined();
  });

  it.each([
    [0x10, 48],
    [0x14, 56],
    // behind the pointers to two blocks of virtual methods
    [0x1c, 64 + 16],
    [0x1f, 64 + 16 + 16],
  ])('names a method of .NET 6 whose type another module has loaded: slots %i', (slots, at) => {
    const { clr, table, code, methodDesc, methodTable, module } = madeOldProcess();
    const { facts } = entryOf(clr, table, { major: 6, start: BASE - table })!;
    clr.int(methodTable + 8, slots);
    clr.int(methodTable + 12, 9);
    clr.word(methodTable + 24, BASE + 0x90000);
    clr.word(methodTable + at, module);
    expect(
      dotnet.nameFrame(words(DotnetCode.JITTED, code, methodDesc), facts, clr, new NameCache()),
    ).toMatchObject([{ name: 'Known.Work.Spin' }]);
  });

  it('ends with a reason whatever the memory holds', () => {
    const results = new Map<string, number>();
    for (let i = 0; i < 3000; i++) {
      const { clr, code, methodDesc, module, image, table } = madeProcess();
      const { facts } = entryOf(clr, table, {})!;
      const places = [code - 8, methodDesc, methodDesc - 40, module + 0x108, module + 0x480, image, table];
      clr.bytes.writeUInt32LE((i * 2654435761) >>> 0, places[i % places.length]! - BASE + (i % 7));
      for (let k = 0; k < 40; k++) clr.bytes[(i * 7919 + k * 1543) % (1 << 19)] = (i * 31 + k) & 0xff;
      const isCode = i % 2 === 0;
      const frame = isCode
        ? words(DotnetCode.JITTED, code, methodDesc)
        : words(DotnetCode.PRECOMPILED, image + 64, module);
      const named = dotnet.nameFrame(frame, facts, clr, new NameCache());
      const result = typeof named === 'string' ? named : 'named';
      results.set(result, (results.get(result) ?? 0) + 1);
    }
    expect([...results.keys()].sort()).toEqual(expect.arrayContaining(['malformed', 'replaced']));
  });
});
