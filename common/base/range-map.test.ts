import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RangeMap } from './range-map.ts';

describe('a map of ranges', () => {
  it('knows the ends of each range, and what is between them', () => {
    const map = new RangeMap<string>();
    map.set(25, { start: 20, end: 30 }, 'b');
    map.set(3, { start: 0, end: 10 }, 'a');
    expect([-1, 0, 9, 10, 19, 20, 29, 30].map((at) => map.get(at))).toEqual([
      ...[undefined, 'a', 'a', undefined, undefined, 'b', 'b', undefined],
    ]);
    expect([...map.entries()]).toEqual([
      [0, 10, 'a'],
      [20, 30, 'b'],
    ]);
  });

  it('gives a range what others leave of it', () => {
    const map = new RangeMap<string>();
    map.set(5, { start: 0, end: 10 }, 'a');
    map.set(25, { start: 20, end: 30 }, 'b');
    map.set(15, { start: 5, end: 100 }, 'between');
    expect([...map.entries()].map(([start, end]) => [start, end])).toEqual([
      [0, 10],
      [10, 20],
      [20, 30],
    ]);
  });

  it('keeps what was set first of each number', () => {
    const range = fc.tuple(fc.nat(200), fc.nat(20), fc.nat(20));
    fc.assert(
      fc.property(fc.array(range, { maxLength: 60 }), (ranges) => {
        const map = new RangeMap<number>();
        const expected = new Map<number, number>();
        for (const [i, [at, before, behind]] of ranges.entries()) {
          if (map.get(at) !== undefined) continue;
          map.set(at, { start: at - before, end: at + behind + 1 }, i);
          // from the number outwards, up to what others have
          for (let n = at; n >= at - before && !expected.has(n); n--) expected.set(n, i);
          for (let n = at + 1; n <= at + behind && !expected.has(n); n++) expected.set(n, i);
        }
        for (let n = -30; n < 250; n++) expect(map.get(n)).toBe(expected.get(n));
      }),
    );
  });
});
