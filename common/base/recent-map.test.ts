import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RecentMap } from './recent-map.ts';

describe('RecentMap', () => {
  it('keeps the last half of its bound, what was asked for among them, and stays within it', () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 20 }), fc.array(fc.nat(30), { maxLength: 200 }), (max, keys) => {
        const map = new RecentMap<number, string>(max);
        const recent: number[] = [];
        for (const key of keys) {
          const known = map.get(key);
          if (recent.includes(key)) expect(known).toBe(`${key}`);
          if (known === undefined) map.set(key, `${key}`);
          else expect(known).toBe(`${key}`);
          recent.splice(0, recent.length, ...[key, ...recent.filter((one) => one !== key)].slice(0, max / 2));
          expect(map.weight).toBeLessThanOrEqual(max);
        }
      }),
    );
  });

  it('counts weights, and leaves out what is too heavy', () => {
    const map = new RecentMap<string, string>(10, (value) => value.length);
    map.set('large', '123456');
    map.set('a', '1234');
    map.set('b', '123');
    expect([map.get('large'), map.get('a'), map.get('b')]).toEqual([undefined, '1234', '123']);
    expect(map.weight).toBeLessThanOrEqual(10);
  });
});
