import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CodeMap } from './code-map.ts';

const entry = fc.tuple(fc.nat(60), fc.integer({ min: 1, max: 20 }));

describe('a code map', () => {
  it('finds the newest entry that covers an address, wherever look-ups fall between additions', () => {
    fc.assert(
      fc.property(fc.array(fc.array(entry, { maxLength: 12 }), { maxLength: 6 }), (batches) => {
        const map = new CodeMap(10_000);
        const newest = new Map<number, number>();
        let place = 0;
        for (const batch of batches) {
          for (const [start, size] of batch) {
            map.add(start, size, ++place);
            for (let at = start; at < start + size; at++) newest.set(at, place);
          }
          for (let at = -1; at < 82; at++) expect(map.find(at)).toBe(newest.get(at));
        }
        expect(map.added).toBe(place);
      }),
      { numRuns: 150 },
    );
  });

  it('finds the newest one also where thousands are added between two look-ups', () => {
    const map = new CodeMap(100_000);
    const newest = new Map<number, number>();
    for (let i = 0; i < 20_000; i++) {
      const [start, size] = [(i * 7919) % 10_007, 1 + ((i * 31) % 50)];
      expect(map.add(start, size, i)).toBe(true);
      for (let at = start; at < start + size; at++) newest.set(at, i);
    }
    for (let at = -1; at < 10_100; at++) expect(map.find(at)).toBe(newest.get(at));
  });

  it('takes no more than it may hold', () => {
    const map = new CodeMap(3);
    expect([0, 10, 20, 30].map((start) => map.add(start, 5, start))).toEqual([true, true, true, false]);
    expect(map.find(22)).toBe(20);
    expect(map.find(32)).toBeUndefined();
    expect(map.add(40, 5, 40)).toBe(false);
  });

  it('takes entries in again where newer ones have taken the place of older ones', () => {
    const map = new CodeMap(2);
    for (let i = 0; i < 100; i++) {
      expect(map.add(0x1000, 16, i)).toBe(true);
      expect(map.find(0x1008)).toBe(i);
    }
  });
});
