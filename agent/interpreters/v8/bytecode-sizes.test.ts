import { describe, expect, it } from 'vitest';
import { findBytecodeSizes } from './bytecode-sizes.ts';

/** A table of `count` bytecodes: number `i` has `i % 3` operands that scale and, now and then, one that does not. */
function tableOf(count: number): number[] {
  const operands = (i: number) => (i < 4 ? 0 : i < 8 ? i - 4 : i % 3);
  const fixed = (i: number) => (i >= 8 && i % 7 === 0 ? 2 : 0);
  return [1, 2, 4].flatMap((width) =>
    Array.from({ length: count }, (_, i) => 1 + operands(i) * width + fixed(i)),
  );
}

const NOISE = [0x90, 1, 1, 1, 1, 1, 2, 3, 4, 5, 6, 0, 0];

describe('the table of bytecode sizes', () => {
  it.each([197, 198, 212])('of %i bytecodes is found among other constants', (count) => {
    const table = tableOf(count);
    expect([...findBytecodeSizes(Buffer.from([...NOISE, ...table, ...NOISE]))!]).toEqual(table);
  });

  it('is not taken from where only its beginning is right', () => {
    const table = tableOf(198);
    table[198 * 2 + 100]!++;
    expect(findBytecodeSizes(Buffer.from([...NOISE, ...table, ...NOISE]))).toBeUndefined();
    expect(findBytecodeSizes(Buffer.from(tableOf(198).slice(0, 500)))).toBeUndefined();
  });
});
