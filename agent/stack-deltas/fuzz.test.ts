/**
 * Real files with bytes changed where unwind information lies: whatever they say, there is an answer, and a table that
 * comes out is one that BPF can read. FUZZ_RUNS=100000 looks longer. A change that once found something is kept below.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { bufferSource } from '../../common/base/byte-source.ts';
import { buildElf } from '../../common/elf/build-elf.ts';
import { type ElfFile, PF_X, PT_GNU_EH_FRAME, PT_LOAD, parseElf } from '../../common/elf/elf.ts';
import { buildTable } from './table/build-table.ts';
import { checkTable } from './table/check-table.ts';

const RUNS = Number(process.env['FUZZ_RUNS'] ?? 150);
const SECTIONS = [
  '.eh_frame',
  '.eh_frame_hdr',
  '.debug_frame',
  '.sframe',
  '.gopclntab',
  '.go.module',
  '.init',
];
/** Sizes, counts and signs change their meaning there. */
const EDGES = [0, 1, 2, 4, 7, 8, 0x0f, 0x10, 0x1b, 0x30, 0x40, 0x7f, 0x80, 0xc0, 0xfe, 0xff];

interface Change {
  at: number;
  value: number;
}

const read = (path: string): Buffer => readFileSync(path);
const fixture = (name: string): string => join(import.meta.dirname, '../../test/fixtures/sframe', name);

/** Neither its section nor its segment: so the next source has its turn. */
function withoutEhFrame(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes);
  const name = copy.lastIndexOf('\0.eh_frame\0');
  copy[name + 2] = 0x78;
  const [table, size, count] = [
    Number(copy.readBigUInt64LE(32)),
    copy.readUInt16LE(54),
    copy.readUInt16LE(56),
  ];
  for (let i = 0; i < count; i++) {
    const at = table + i * size;
    if (copy.readUInt32LE(at) === PT_GNU_EH_FRAME) copy.writeUInt32LE(0, at);
  }
  return copy;
}

const FILES: Readonly<Record<string, Buffer>> = {
  'a program': read('/bin/sh'),
  'one with SFrame alone': withoutEhFrame(read(fixture('sframe-x86_64.so'))),
  'one of arm64': read(fixture('sframe-aarch64.so')),
};

/** Offsets of the file in which a change may matter: its headers, and what the readers look at. */
function targetsOf(bytes: Buffer): [number, number][] {
  const elf: ElfFile = parseElf(bufferSource(bytes));
  const sections = SECTIONS.map((name) => elf.section(name)).filter((s) => s !== undefined);
  return [
    [0, 1024],
    ...sections.map(({ offset, size }): [number, number] => [offset, Math.min(size, 1 << 16)]),
  ];
}

const changesIn = (targets: readonly [number, number][]): fc.Arbitrary<Change[]> =>
  fc.array(
    fc
      .tuple(fc.constantFrom(...targets), fc.nat(), fc.oneof(fc.constantFrom(...EDGES), fc.nat(255)))
      .map(([[start, size], offset, value]) => ({ at: start + (offset % size), value })),
    { minLength: 1, maxLength: 8 },
  );

function tryChanged(bytes: Buffer, changes: readonly Change[]): string {
  const changed = Buffer.from(bytes);
  for (const { at, value } of changes) changed[at] = value;
  const result = buildTable(bufferSource(changed));
  if (result.kind !== 'built') return result.kind;
  const { table, machine } = result.executable;
  if (table) expect(checkTable(table, machine)).toBe('');
  return table ? 'table' : 'no table';
}

describe.each(Object.entries(FILES))('%s', (_title, bytes) => {
  test('has a table as it is', () => expect(tryChanged(bytes, [])).toBe('table'));

  test('with bytes changed is answered for, and its table can be read', () => {
    const outcomes = new Set<string>();
    fc.assert(
      fc.property(changesIn(targetsOf(bytes)), (changes) => {
        outcomes.add(tryChanged(bytes, changes));
      }),
      { numRuns: RUNS },
    );
    expect(outcomes).toContain('table');
  });

  test('cut short is answered for', () => {
    fc.assert(
      fc.property(fc.nat(bytes.length), (length) => {
        const result = buildTable(bufferSource(bytes.subarray(0, length)));
        if (result.kind === 'built' && result.executable.table)
          expect(checkTable(result.executable.table, result.executable.machine)).toBe('');
      }),
      { numRuns: Math.ceil(RUNS / 3) },
    );
  });
});

/** Changes that once found something. */
test('code at a page whose number has more than 32 bits has no table', () => {
  const bytes = FILES['a program']!;
  const segments = Array.from({ length: bytes.readUInt16LE(56) }, (_, i) => 64 + i * 56);
  const code = segments.find(
    (at) => bytes.readUInt32LE(at) === PT_LOAD && bytes.readUInt32LE(at + 4) & PF_X,
  )!;
  expect(tryChanged(bytes, [{ at: code + 8 + 6, value: 1 }])).toBe('broken');
});

test('code that is larger than its file, at addresses that no number holds exactly, is not searched', () => {
  const bytes = FILES['one of arm64']!;
  const sections = Number(bytes.readBigUInt64LE(40));
  const index = parseElf(bufferSource(bytes)).sections.findIndex(({ name }) => name === '.text');
  const highByteOf = (field: number): number => sections + index * 64 + field + 7;
  const far = { at: highByteOf(16), value: 4 };
  const large = { at: highByteOf(32), value: 0xc6 };
  for (const changes of [[large], [far], [large, far]])
    expect(['table', 'no table', 'broken']).toContain(tryChanged(bytes, changes));
});

/** Frame sections of any bytes in a file that is well made otherwise. */
test.each(['.eh_frame', '.debug_frame', '.sframe'])(
  'any bytes as %s leave a table that can be read',
  (name) => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 2000 }), (bytes) => {
        const elf = buildElf({
          machine: 62,
          entry: 0x1000,
          segments: [{ type: PT_LOAD, flags: PF_X | 4, offset: 0x1000, filesz: 0x2000 }],
          sections: [
            { name: '.text', addr: 0x1000, flags: 6, bytes: new Uint8Array(0x2000) },
            { name, addr: 0x4000, flags: 2, bytes },
          ],
        });
        expect(['table', 'no table']).toContain(tryChanged(Buffer.from(elf), []));
      }),
      { numRuns: RUNS },
    );
  },
);
