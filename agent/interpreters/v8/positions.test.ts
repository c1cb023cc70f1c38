import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { offsetOfBytecode } from './bytecodes.ts';
import {
  findBytecodeIndex,
  findPosition,
  type PositionFlags,
  readInlinings,
  readPositions,
} from './positions.ts';

function vlq(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  while (rest >= 128) {
    bytes.push((rest % 128) + 128);
    rest = Math.floor(rest / 128);
  }
  return [...bytes, rest];
}

const zigZag = (value: number): number => (value < 0 ? -2 * value - 1 : 2 * value);

interface Entry {
  step: number;
  isStatement: boolean;
  offset: number;
  inlining: number;
}

const raw = ({ offset, inlining }: Entry): number => (inlining + 1) * 2 ** 31 + (offset + 1) * 2;

/** As V8 writes them, before 14.0 without flags. */
function encode(entries: Entry[], flags: PositionFlags): Uint8Array {
  let before = 0;
  const bytes = entries.flatMap((entry) => {
    const { step, isStatement } = entry;
    const code =
      flags > 0
        ? vlq(step * 2 ** flags + 2 + Number(isStatement))
        : vlq(zigZag(isStatement ? step : -step - 1));
    const position = vlq(zigZag(raw(entry) - before));
    before = raw(entry);
    return [...code, ...position];
  });
  return Uint8Array.from(bytes);
}

const entries = fc.array(
  fc.record({
    step: fc.integer({ min: 0, max: 5000 }),
    isStatement: fc.boolean(),
    offset: fc.integer({ min: 0, max: 2 ** 30 - 2 }),
    inlining: fc.integer({ min: -1, max: 65_534 }),
  }),
  { maxLength: 50 },
);

const flagCounts = fc.constantFrom<PositionFlags>(0, 2, 3);

describe('position tables', () => {
  it('gives the last entry at or before an offset', () => {
    fc.assert(
      fc.property(entries, flagCounts, fc.integer({ min: 0, max: 100_000 }), (list, flags, at) => {
        let code = -1;
        let expected = { offset: -1, inlining: -1 };
        for (const { step, offset, inlining } of list) {
          code += step;
          if (code <= at) expected = { offset, inlining };
        }
        expect(findPosition(encode(list, flags), at, flags)).toEqual(expected);
      }),
    );
  });

  it('reads the same function as V8 13.6 and 14.1 write it', () => {
    expect(findPosition(Uint8Array.of(1, 2, 7, 9, 6), 0, 0)).toEqual(
      findPosition(Uint8Array.of(2, 2, 0x0e, 0x12, 0x0f), 0, 2),
    );
  });

  it('reads the same function as V8 14.7 and 15.0 write it', () => {
    const older = readPositions(Buffer.from('02c00c071c22001728', 'hex'), 2);
    expect(older.map(({ code }) => code)).toEqual([-1, 0, 8, 13]);
    expect(readPositions(Buffer.from('02c00c0b1c42002b28', 'hex'), 3)).toEqual(older);
  });

  it('ends with what is damaged', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.integer(), flagCounts, (bytes, at, flags) => {
        const { offset, inlining } = findPosition(bytes, at, flags);
        expect(offset).toBeGreaterThanOrEqual(-1);
        expect(inlining).toBeGreaterThanOrEqual(-1);
      }),
    );
  });

  it('gives no inlinings outside the list', () => {
    const first = { caller: { offset: -1, inlining: -1 }, literal: 0 };
    expect(readInlinings(new Uint8Array(40), 1)).toEqual([first]);
    expect(readInlinings(new Uint8Array(40), 9)).toEqual([first, first]);
    expect(readInlinings(new Uint8Array(40), -1)).toEqual([]);
  });
});

describe('baseline code', () => {
  it('counts bytecodes behind the prologue', () => {
    const table = Uint8Array.of(10, 4, 6);
    expect([0, 9, 10, 13, 14, 19].map((at) => findBytecodeIndex(table, at))).toEqual([-1, -1, 0, 0, 1, 1]);
  });

  it('steps over prefixed bytecodes', () => {
    // opcodes: 0 wide, 1 extra wide, 2 and 3 their debug forms, 4 with one operand
    const sizes = Uint8Array.of(1, 1, 1, 1, 2, 1, 1, 1, 1, 3, 1, 1, 1, 1, 5);
    const code = Uint8Array.of(4, 0, 0, 4, 0, 0, 1, 4, 0, 0, 0, 0, 4, 0);
    expect([0, 1, 2, 3].map((i) => offsetOfBytecode(code, sizes, i))).toEqual([0, 2, 6, 12]);
  });
});
