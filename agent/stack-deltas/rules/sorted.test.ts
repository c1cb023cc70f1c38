import fc from 'fast-check';
import { expect, it } from 'vitest';
import { sortedOrder } from './sorted.ts';

const keysArbitrary = fc.array(fc.oneof(fc.nat(5), fc.nat(2 ** 32), fc.constant(Number.MAX_SAFE_INTEGER)), {
  maxLength: 60,
});

it('orders keys, of equal ones the last first, with and without an order of the first ones', () => {
  fc.assert(
    fc.property(keysArbitrary, fc.nat(60), (keys, size) => {
      const expected = keys.map((_, i) => i).sort((a, b) => keys[a]! - keys[b]! || b - a);
      const column = Float64Array.from([...keys, 1, 2]);
      expect([...sortedOrder(column, keys.length)]).toEqual(expected);
      const known = sortedOrder(column, Math.min(size, keys.length));
      expect([...sortedOrder(column, keys.length, known)]).toEqual(expected);
    }),
  );
});
