import fc from 'fast-check';
import { expect, it } from 'vitest';
import { countBelow, lastAtOrBelow } from './search.ts';

it('finds what a walk from the front finds', () => {
  fc.assert(
    fc.property(
      fc.array(fc.nat(40), { maxLength: 30 }),
      fc.nat(42),
      fc.nat(30),
      fc.nat(30),
      (values, wanted, a, b) => {
        const sorted = Float64Array.from(values).sort();
        const from = Math.min(a, sorted.length);
        const to = Math.max(from, Math.min(b, sorted.length));
        let last = -1;
        for (let i = from; i < to; i++) if (sorted[i]! <= wanted) last = i;
        expect(lastAtOrBelow(sorted, wanted, from, to)).toBe(last);
        expect(countBelow(to, (i) => sorted[i]! < wanted)).toBe(
          sorted.subarray(0, to).filter((value) => value < wanted).length,
        );
      },
    ),
  );
});
