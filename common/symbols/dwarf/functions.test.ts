import { expect, test } from 'vitest';
import { Functions } from './functions.ts';
import { Intervals } from './intervals.ts';

/** Each inlined into the one before it. */
const nested = (depth: number): Functions =>
  new Functions(
    {
      nameDies: Float64Array.from({ length: depth }, (_, i) => i),
      parents: Int32Array.from({ length: depth }, (_, i) => i - 1),
      callFiles: new Uint32Array(depth),
      callLines: Uint32Array.from({ length: depth }, (_, i) => 1000 + i),
      callColumns: new Uint16Array(depth),
    },
    new Intervals(
      new Float64Array(depth),
      new Float64Array(depth).fill(10),
      Uint32Array.from({ length: depth }, (_, i) => i),
    ),
  );

test('of more functions at one place than receivers take, the innermost ones and the outermost stay', () => {
  expect(nested(256).lookup(5)).toHaveLength(256);
  const chain = nested(300).lookup(5);
  expect(chain.map(({ nameDie }) => nameDie)).toEqual([...Array.from({ length: 255 }, (_, i) => 299 - i), 0]);
  // where the outermost calls what was inlined into it
  expect(chain[254]!.callLine).toBe(1001);
  expect(chain[255]!.isInlined).toBe(false);
});
