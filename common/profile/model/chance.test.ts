import { describe, expect, it } from 'vitest';
import { mayBeChance, samplesIn } from './chance.ts';
import { cpuType, NO_PERIOD } from './profile-type.ts';

describe('a change that may be chance', () => {
  it.each([
    // ten samples of a hundred more than ten are nothing; the same of ten thousand is
    [10, 100, 15, 100, true],
    [1000, 10_000, 1500, 10_000, false],
    [10, 100, 40, 100, false],
    // what was not met may have been there
    [0, 100, 1, 100, true],
    [0, 100, 20, 100, false],
    [0, 3, 1, 3, true],
    // of few samples on one side
    [5000, 10_000, 6, 10, true],
    // nothing to compare with
    [0, 0, 5, 10, false],
  ])('%i of %i, then %i of %i: %s', (part, all, partAfter, allAfter, isChance) => {
    expect(mayBeChance({ part, all }, { part: partAfter, all: allAfter })).toBe(isChance);
    expect(mayBeChance({ part: partAfter, all: allAfter }, { part, all })).toBe(isChance);
  });

  it('is there in one of twenty pairs where nothing has changed', () => {
    let state = 1;
    const random = (): number => {
      state = (state * 48_271) % 2_147_483_647;
      return state / 2_147_483_647;
    };
    const take = (share: number, all: number) => {
      let part = 0;
      for (let i = 0; i < all; i++) if (random() < share) part++;
      return { part, all };
    };
    for (const share of [0.02, 0.3]) {
      let told = 0;
      for (let pair = 0; pair < 1000; pair++) if (!mayBeChance(take(share, 400), take(share, 300))) told++;
      expect(told).toBeLessThan(80);
      expect(told).toBeGreaterThan(5);
    }
  });
});

it('samples are counted where values say how many there are', () => {
  const of = (type: string, unit: string) => ({ ...cpuType(10_000_000n), sampleType: { type, unit } });
  expect(samplesIn(30, cpuType(10_000_000n))).toBe(30);
  expect(samplesIn(300_000_000, of('cpu', 'nanoseconds'))).toBe(30);
  expect(samplesIn(300, of('off_cpu', 'nanoseconds'))).toBeUndefined();
  expect(
    samplesIn(300, { sampleType: { type: 'alloc_space', unit: 'bytes' }, ...NO_PERIOD }),
  ).toBeUndefined();
});
