import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { DOTNET, DotnetCode } from '../../records/records.gen.ts';
import { NameCache, UnsupportedRuntime } from '../contract.ts';
import { BASE, FakeClr } from './fake-clr.ts';
import { dotnet } from './plugin.ts';

const ASSEMBLY = readFileSync(join(import.meta.dirname, '../../../test/runtimes/dotnet/chain.dll'));
const CODE_AT = 2 ** 48;
/** Row of Known.Work.Spin. */
const ROW = 2;

/** A process of .NET 8 with one method that was compiled, and one image. */
function madeProcess() {
  const clr = new FakeClr();
  const assembly = clr.put(ASSEMBLY);
  const text = ASSEMBLY.toString('latin1');
  const simpleName = assembly + text.indexOf('\0chain\0', text.indexOf('BSJB')) + 1;
  const module = clr.reserve(0x500);
  clr.word(module + 0x108, simpleName);
  const [assemblyFile, peImage] = [clr.reserve(64), clr.reserve(64)];
  clr.word(module + 0x110, assemblyFile);
  clr.word(assemblyFile + 8, peImage);
  clr.word(peImage + 16, clr.put(Buffer.from('/app/chain.dll\0', 'utf16le')));
  const methodTable = clr.reserve(64);
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
  return { clr, code, methodDesc, module, image, table };
}

const entryOf = (clr: FakeClr, table: number, facts: object) =>
  dotnet.attach!(clr, table, { major: 8, dacTable: 0, descriptor: 0, ...facts });

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
    expect(dotnet.attach!(clr, BASE + 0x90000, { major: 8, dacTable: 0, descriptor: 0 })).toBeUndefined();
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
