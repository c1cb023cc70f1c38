import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Cursor } from '../../base/cursor.ts';
import { FileNames } from './file-names.ts';
import { LineProgram, LineTable } from './line-table.ts';

const FILES = new FileNames({ compDir: '/', directories: ['/'], names: [], directoryIndices: [], first: 1 });
const HEADER = { minInstruction: 1, lineBase: -3, lineRange: 12, opcodeBase: 13, operandCounts: [] };
const CODE = 0x100;

/** A sequence by its start and the steps between its rows. */
interface Sequence {
  start: number;
  steps: readonly { address: number; line: number }[];
}

const uleb = (value: number): number[] =>
  value < 128 ? [value] : [(value & 127) | 128, ...uleb(Math.floor(value / 128))];

const program = (sequences: readonly Sequence[]): Uint8Array =>
  Uint8Array.from(
    sequences.flatMap(({ start, steps }) => [
      ...[0, 5, 2, start & 255, (start >> 8) & 255, 0, 0],
      ...steps.flatMap(({ address, line }) => [2, ...uleb(address), 3, line, 1]),
      ...[2, 4, 0, 1, 1],
    ]),
  );

function run(bytes: Uint8Array, only?: number): { table: LineTable; read: number } {
  const cursor = new Cursor(bytes);
  const lines = new LineProgram(HEADER, (address) => address >= CODE, only);
  lines.run(cursor);
  return { table: LineTable.of(FILES, lines), read: cursor.at };
}

const step = fc.record({ address: fc.nat(20), line: fc.nat(9) });
/** Apart from each other; what the linker dropped begins at 0, and may reach into the code. */
const sequences = fc
  .array(fc.tuple(fc.boolean(), fc.array(step, { maxLength: 20 })), { maxLength: 6 })
  .map((some) => some.map(([isDropped, steps], i) => ({ start: isDropped ? 0 : CODE + i * 0x400, steps })));

describe('a line number program', () => {
  it('says of one address what it says of all of them', () => {
    fc.assert(
      fc.property(sequences, (some) => {
        const bytes = program(some);
        const whole = run(bytes).table;
        const addresses = some.flatMap((_, i) => [0, 1, 50, 120, 399].map((at) => CODE + i * 0x400 + at));
        expect(addresses.map((address) => run(bytes, address).table.lookup(address))).toEqual(
          addresses.map((address) => whole.lookup(address)),
        );
      }),
    );
  });

  it('is read no further than to behind the one address', () => {
    const bytes = program([
      { start: CODE, steps: Array.from({ length: 100 }, () => ({ address: 4, line: 1 })) },
      { start: CODE + 0x1000, steps: [{ address: 4, line: 1 }] },
    ]);
    const { table, read } = run(bytes, CODE + 6);
    expect(table.lookup(CODE + 6)).toMatchObject({ line: 2 });
    expect(read).toBeLessThan(30);
  });

  it.each([
    [65_535, 65_535],
    [65_536 + 7, 0],
  ])('says of column %i that it is %i', (written, shown) => {
    const bytes = [0, 5, 2, CODE & 255, CODE >> 8, 0, 0, 5, ...uleb(written), 1, 2, 4, 0, 1, 1];
    expect(run(Uint8Array.from(bytes)).table.lookup(CODE)).toMatchObject({ line: 1, column: shown });
  });
});
