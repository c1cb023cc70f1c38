import fc from 'fast-check';
import { expect, test } from 'vitest';
import { HashIndex } from './hash-index.ts';

test('an index finds what a map would, through collisions, deletions and growth', () => {
  // few values of the lower 32 bits, next to each other, so that entries are probed past one another
  const hash = fc.record({ low: fc.constantFrom(0, 1, 2, 3, 0x1000_0000, 0xffff_ffff), high: fc.nat(400) });
  const step = fc.record({ isSet: fc.boolean(), hash });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 3000 }), (steps) => {
      const hashes: { low: number; high: number }[] = [];
      const index = new HashIndex((value, low, high) => {
        const of = hashes[value]!;
        return of.low === low >>> 0 && of.high === high;
      });
      const expected = new Map<string, number>();
      for (const { isSet, hash } of steps) {
        const key = `${hash.low} ${hash.high}`;
        if (isSet) {
          const value = hashes.push(hash) - 1;
          index.set(hash.low, hash.high, value);
          expected.set(key, value);
        } else {
          index.delete(hash.low, hash.high);
          expected.delete(key);
        }
      }
      const got = steps.map(({ hash: { low, high } }) => [`${low} ${high}`, index.get(low, high)] as const);
      for (const [key, value] of got) expect(value).toBe(expected.get(key) ?? -1);
      expect(index.size).toBe(expected.size);
    }),
    { numRuns: 100 },
  );
});
