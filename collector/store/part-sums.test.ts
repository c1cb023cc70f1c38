import { expect, it } from 'vitest';
import { splitBySums } from './part-sums.ts';
import type { RowQuery } from './store.ts';

const HOUR = 3_600_000;
const START_MS = Date.UTC(2026, 0, 1, 12);

/** A timeline of the part and the hour before it. */
const timeline = (changes: Partial<RowQuery>): RowQuery => ({
  fromMs: START_MS - HOUR,
  toMs: START_MS + HOUR,
  series: undefined,
  groups: undefined,
  nodes: undefined,
  cpus: undefined,
  links: undefined,
  by: ['group', 'time'],
  stepMs: 7_654_321 / 9,
  resolutionMs: 1,
  ...changes,
});

it('answers long steps from sums alone, wherever they begin', () => {
  const split = splitBySums(START_MS, timeline({ resolutionMs: 10_000 }));
  expect(split?.cut).toEqual([]);
  expect([...split!.isWhole]).toEqual(Array(360).fill(1));
});

it('reads the ten seconds that two steps share, where times are wanted as they are', () => {
  const split = splitBySums(START_MS, timeline({}));
  expect(split?.cut).toHaveLength(4);
  expect(split?.cut[0]).toEqual([650_000, 660_000]);
});

it('reads the ten seconds in which a range begins', () => {
  const split = splitBySums(START_MS, timeline({ resolutionMs: 10_000, fromMs: START_MS + 12_345 }));
  expect(split?.cut).toEqual([[10_000, 20_000]]);
  expect([...split!.isWhole].indexOf(1)).toBe(2);
});
