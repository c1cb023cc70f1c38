import { describe, expect, it } from 'vitest';
import { CannotRead } from '../runtime-memory.ts';
import { inlinedAt } from './inline-tree.ts';
import { Nibbles } from './nibbles.ts';

/** Read from a live .NET 8: of Inlined, with Inner, Middle and the Inner of that, of test/runtimes/dotnet/chain.cs. */
const TREE =
  '9482d19da8cbf407002004e8dc89ba4c7f00005400d09da8cbf40700c06682ce9da8cbf40700c0739326243990261900a233' +
  '206679920169923024552c52b02069f227';
const INLINED = 0x7f4c_ba89_dd18;
const INNER = 0x7f4c_ba89_dce8;
const MIDDLE = 0x7f4c_ba89_dd00;

const at = (offset: number, hasCalls = true) =>
  inlinedAt(new Nibbles(Buffer.from(TREE, 'hex')), offset, hasCalls).map(({ methodDesc, ilOffset }) => [
    methodDesc,
    ilOffset,
  ]);

describe('the tree of inlined methods', () => {
  it.each([
    [0, [[INLINED, 0]]],
    [
      14,
      [
        [INNER, 0],
        [INLINED, 1],
      ],
    ],
    [
      60,
      [
        [INNER, 0],
        [MIDDLE, 3],
        [INLINED, 20],
      ],
    ],
    [
      76,
      [
        [MIDDLE, 9],
        [INLINED, 20],
      ],
    ],
    [90, [[INLINED, 38]]],
  ])('at %d', (offset, places) => {
    expect(at(offset)).toEqual(places);
  });

  it('has no places in callers where they are not told', () => {
    expect(at(60, false)).toEqual([
      [INNER, 0],
      [MIDDLE, undefined],
      [INLINED, undefined],
    ]);
  });

  it('ends with a reason whatever it holds', () => {
    let failures = 0;
    for (let i = 0; i < 4000; i++) {
      const bytes = Buffer.from(TREE, 'hex');
      for (let k = 0; k < 3; k++) bytes[(i * 7919 + k * 1543) % bytes.length] = (i * 31 + k) & 0xff;
      try {
        expect(inlinedAt(new Nibbles(bytes), i % 120, true).length).toBeLessThanOrEqual(16);
      } catch (error) {
        expect(error).toBeInstanceOf(CannotRead);
        failures++;
      }
    }
    expect(failures).toBeGreaterThan(100);
  });
});
