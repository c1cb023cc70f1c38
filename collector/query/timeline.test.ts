import { expect, it } from 'vitest';
import { profileFromText } from '../../test/browser/synthetic-profile.ts';
import { MemoryStore } from '../store/memory/memory-store.ts';
import { readLargestGroups, readStepNanos, readTimeline } from './timeline.ts';

it('has the largest groups of a timeline, and the events of all others', async () => {
  const now = () => Date.UTC(2026, 0, 1, 12);
  const store = new MemoryStore({ maxBytes: 2 ** 26, maxAgeMs: 3_600_000, now });
  const text = Array.from({ length: 50 }, (_, i) => `p:${100 + i};main@n ${100 - i}`).join('\n');
  store.append(profileFromText(text, { endMs: now(), spanMs: 10_000 }));
  const filter = { fromMs: now() - 20_000, toMs: now() + 1, where: [] };
  const { groups, other, ...rest } = await readLargestGroups(store, filter, 4, 'pid', 3);
  expect(groups.map(({ value, samples }) => [value, samples])).toEqual([
    ['100', 100],
    ['101', 99],
    ['102', 98],
  ]);
  expect(rest).toEqual({ samples: 3775, groupCount: 50 });
  const whole = (await readTimeline(store, filter, 4, undefined)).get('')!;
  const sums = other.map((count, step) => groups.reduce((sum, { counts }) => sum + counts[step]!, count));
  expect(sums).toEqual([...whole]);
  const earlier = { fromMs: 0, toMs: filter.fromMs, where: [] };
  const nothing = { samples: 0, groupCount: 0, groups: [], other: [0] };
  expect(await readLargestGroups(store, earlier, 1, 'pid', 3)).toEqual(nothing);
  expect(await readLargestGroups(store, earlier, 1, undefined, 3)).toEqual(nothing);
});

it('knows the CPU time of each step, sampled at whatever rate', async () => {
  const now = () => Date.UTC(2026, 0, 1, 12);
  const store = new MemoryStore({ maxBytes: 2 ** 26, maxAgeMs: 3_600_000, now });
  const add = (count: number, periodNanos: number, agoMs: number) =>
    store.append(profileFromText(`p:1;main@n ${count}`, { endMs: now() - agoMs, spanMs: 1, periodNanos }));
  add(20, 50_000_000, 1500);
  add(100, 10_000_000, 500);
  const filter = { fromMs: now() - 2000, toMs: now(), where: [] };
  expect([...(await readStepNanos(store, filter, 2))]).toEqual([1e9, 1e9]);
});
