import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { typedProfile } from '../../test/support/typed-profile.ts';
import { MemoryStore } from '../store/memory/memory-store.ts';
import { readLargestGroups, readTimeline } from './timeline.ts';
import { readWindow } from './window.ts';

const END_MS = Date.UTC(2026, 0, 1, 0, 10);
const OFF_CPU = { type: 'off_cpu', unit: 'nanoseconds' };
const type = 'off_cpu/nanoseconds';
const RANGE = { fromMs: END_MS - 8000, toMs: END_MS, where: [], type };

function storeOf(...waits: [agoMs: number, ns: number][]): MemoryStore {
  const store = new MemoryStore({ maxBytes: 2 ** 26, maxAgeMs: 3_600_000, now: () => END_MS });
  for (const [agoMs, ns] of waits)
    store.append(typedProfile(`sh:1;wait@k ${ns}`, { sampleType: OFF_CPU, endMs: END_MS - agoMs }));
  return store;
}

const stepsOf = async (store: MemoryStore, range: typeof RANGE, steps: number): Promise<number[]> => [
  ...((await readTimeline(store, range, steps, undefined)).get('') ?? new Float64Array(steps)),
];
const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

describe('a wait in a timeline', () => {
  it('is where it was, not where it ended', async () => {
    const store = storeOf([1500, 3e9]);
    const expected = [0, 0, 0, 5e8, 1e9, 1e9, 5e8, 0];
    expect(await stepsOf(store, RANGE, 8)).toEqual(expected);
    expect([...(await readWindow(store, RANGE, 8)).timeline]).toEqual(expected);
    const { samples, groups } = await readLargestGroups(store, RANGE, 8, 'process', 3);
    expect([samples, groups]).toEqual([3e9, [{ value: 'sh', samples: 3e9, counts: expected }]]);
  });

  it('that began before the range or ends behind it is there with its part', async () => {
    const store = storeOf([7500, 2e9], [-2000, 3e9]);
    expect(await stepsOf(store, RANGE, 4)).toEqual([5e8, 0, 0, 1e9]);
  });

  it('adds up to its value, to the nanosecond, over all steps of all ranges that it is in', async () => {
    const wait = fc.tuple(fc.integer({ min: 0, max: 20_000 }), fc.integer({ min: 1, max: 9_000_000_000 }));
    await fc.assert(
      fc.asyncProperty(
        fc.array(wait, { minLength: 1, maxLength: 20 }),
        // of fewer, a step is so long that nothing is spread
        fc.integer({ min: 3, max: 700 }),
        fc.integer({ min: -19_000, max: 19_000 }),
        async (waits, steps, cutMs) => {
          const store = storeOf(...waits);
          const total = sum(waits.map(([, ns]) => ns));
          const all = { ...RANGE, fromMs: END_MS - 40_000, toMs: END_MS + 1 };
          const cut = END_MS - 20_000 + cutMs;
          const [before, after] = [
            { ...all, toMs: cut },
            { ...all, fromMs: cut },
          ];
          const timeline = await stepsOf(store, all, steps);
          expect(Math.min(...timeline)).toBeGreaterThanOrEqual(0);
          expect(sum(timeline)).toBe(total);
          expect(sum(await stepsOf(store, before, steps)) + sum(await stepsOf(store, after, steps))).toBe(
            total,
          );
        },
      ),
      { numRuns: 60 },
    );
  });
});
