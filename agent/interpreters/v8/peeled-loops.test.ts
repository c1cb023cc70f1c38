import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findBackJump, findFirstPass } from './peeled-loops.ts';
import type { Inlining, PositionEntry } from './positions.ts';

const entry = (code: number, offset: number, isStatement: boolean): PositionEntry => ({
  code,
  position: { offset, inlining: -1 },
  isStatement,
});

/** Of `c` in test/runtimes/v8/chain.cjs, as `node --print-bytecode` shows them. */
const CHAIN = [
  entry(-1, 221, false),
  entry(0, 241, true),
  entry(2, 261, true),
  entry(5, 278, false),
  entry(9, 276, false),
  entry(12, 287, false),
  entry(16, 246, false),
];

const inlined = (offset: number, literal: number, inlining = -1): Inlining => ({
  caller: { offset, inlining },
  literal,
});

describe('a loop that was compiled twice', () => {
  it('is known by the position of its jump back', () => {
    expect(findBackJump(CHAIN, 246)).toEqual(entry(16, 246, false));
    for (const offset of [-1, 221, 241, 261, 278, 276, 287, 999])
      expect(findBackJump(CHAIN, offset)).toBeUndefined();
  });

  it('has what was inlined the second time in the same order', () => {
    // first, small, spin inside small, first again; then all once more
    const list = [
      inlined(278, 0),
      inlined(276, 1),
      inlined(254, 2, 1),
      inlined(287, 0),
      inlined(246, 0),
      inlined(246, 1),
      inlined(254, 2, 5),
      inlined(246, 0),
    ];
    expect([4, 5, 7].map((i) => findFirstPass(list, i, CHAIN))).toEqual([0, 1, 3]);
    // a third time
    const more = [...list, inlined(246, 0), inlined(246, 1), inlined(246, 0)];
    expect([8, 9, 10].map((i) => findFirstPass(more, i, CHAIN))).toEqual([0, 1, 3]);
  });

  it('has no first time for what was not inlined then, or before the loop', () => {
    expect(findFirstPass([inlined(278, 0), inlined(246, 9)], 1, CHAIN)).toBe(-1);
    expect(findFirstPass([inlined(241, 0), inlined(246, 0)], 1, CHAIN)).toBe(-1);
  });

  it('is looked for with few looks at a long table, and not in a list that V8 never makes', () => {
    let looks = 0;
    const counted = ({ code, position, isStatement }: PositionEntry): PositionEntry => ({
      code,
      position,
      get isStatement() {
        looks++;
        return isStatement;
      },
    });
    const long = Array.from({ length: 2000 }, (_, i) => entry(-1, i, false));
    findFirstPass([inlined(278, 0), inlined(246, 0)], 1, [...long, ...CHAIN].map(counted));
    expect(looks).toBeLessThan(10_000);
    const many = Array.from({ length: 50_000 }, (_, i) => inlined(i % 2 ? 278 : 246, i));
    expect(findFirstPass(many, many.length - 1, CHAIN)).toBe(-1);
  });

  it('takes any list', () => {
    const inlining = fc
      .tuple(
        fc.constantFrom(221, 241, 261, 278, 287, 246, -1),
        fc.nat({ max: 3 }),
        fc.integer({ min: -1, max: 4 }),
      )
      .map(([offset, literal, of]) => inlined(offset, literal, of));
    fc.assert(
      fc.property(fc.array(inlining, { minLength: 1, maxLength: 20 }), fc.nat(), (list, at) => {
        const index = at % list.length;
        const found = findFirstPass(list, index, CHAIN);
        expect(found).toBeLessThan(index);
        if (found >= 0) expect(list[found]!.literal).toBe(list[index]!.literal);
      }),
    );
  });
});
