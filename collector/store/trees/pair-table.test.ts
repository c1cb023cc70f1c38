import fc from 'fast-check';
import { expect, it } from 'vitest';
import { PairTable } from './pair-table.ts';

it('answers as a map does', () => {
  const key = fc.oneof(fc.integer({ min: -3, max: 20 }), fc.integer());
  fc.assert(
    fc.property(fc.array(fc.tuple(key, key, fc.nat()), { maxLength: 600 }), (entries) => {
      const table = new PairTable();
      const map = new Map<string, number>();
      for (const [a, b, value] of entries) {
        expect(table.get(a, b)).toBe(map.get(`${a} ${b}`));
        table.set(a, b, value % 1000);
        map.set(`${a} ${b}`, value % 1000);
      }
      for (const [a, b] of entries) expect(table.get(a, b)).toBe(map.get(`${a} ${b}`));
    }),
    { numRuns: 50 },
  );
});
