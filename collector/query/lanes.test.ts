import { expect, it } from 'vitest';
import { attributesText } from '../../common/profile/model/attributes.ts';
import { THREAD_STATES } from '../../common/profile/model/thread-types.ts';
import { profileFromText } from '../../test/browser/synthetic-profile.ts';
import { typedProfile } from '../../test/support/typed-profile.ts';
import { MemoryStore } from '../store/memory/memory-store.ts';
import { readLanes } from './lanes.ts';

const END_MS = Date.UTC(2026, 0, 1, 0, 10);
const FROM_MS = END_MS - 10_000;
const [RUNNING, RUNNABLE, LOCK, SLEEP] = ['running', 'runnable', 'blocked:lock', 'blocked:sleep'].map(
  (state) => (THREAD_STATES as readonly string[]).indexOf(state),
) as [number, number, number, number];

function typed(type: string, state: string, ms: number, agoMs: number) {
  const profile = typedProfile(`app:7;f@n ${ms * 1e6}`, {
    ...{ sampleType: { type, unit: 'nanoseconds' }, endMs: END_MS - agoMs },
  });
  profile.processes[1] = { ...profile.processes[1]!, attributes: attributesText([['thread.state', state]]) };
  return profile;
}

async function lanesOf(profiles: ReturnType<typeof typed>[], steps = 10) {
  const store = new MemoryStore({ maxBytes: 2 ** 26, maxAgeMs: 3_600_000, now: () => END_MS });
  for (const profile of profiles) store.append(profile);
  const { threads } = await readLanes(
    store,
    { fromMs: FROM_MS, toMs: END_MS, where: [] },
    { steps, limit: 10 },
  );
  const [thread] = threads;
  return { thread: thread!, at: (step: number) => shareAt(thread!, step) };
}

/** `state share` with `*` for what is known by the interval alone. */
function shareAt(
  { steps, states, shares, spread }: Awaited<ReturnType<typeof readLanes>>['threads'][number],
  step: number,
) {
  return steps.flatMap((each, i) =>
    each === step ? [`${THREAD_STATES[states[i]!]} ${shares[i]}${spread[i]! > 0 ? '*' : ''}`] : [],
  );
}

it('a wait ends at its time, and began its value before', async () => {
  const { thread, at } = await lanesOf([typed('off_cpu', 'blocked:lock', 2500, 4000)]);
  expect(thread.totals[LOCK]).toBe(2.5e9);
  expect([at(2), at(3), at(4), at(5), at(6)]).toEqual([
    [],
    ['blocked:lock 0.5'],
    ['blocked:lock 1'],
    ['blocked:lock 1'],
    [],
  ]);
});

it('of a wait that stands for others no more is drawn than there was room for', async () => {
  const { thread, at } = await lanesOf([
    typed('off_cpu', 'blocked:lock', 1000, 6000),
    typed('off_cpu', 'blocked:sleep', 9000, 4000),
  ]);
  expect(at(3)).toEqual(['blocked:lock 1']);
  expect([at(4), at(5)]).toEqual([['blocked:sleep 1'], ['blocked:sleep 1']]);
  expect(thread.totals[SLEEP]).toBe(2e9);
});

it('what was counted and no sample shows is spread over the rest of the interval', async () => {
  const { thread, at } = await lanesOf([
    typed('off_cpu', 'blocked:sleep', 4000, 4000),
    typed('thread_time', 'blocked:sleep', 7000, 0),
    typed('thread_time', 'running', 2000, 0),
    typed('thread_time', 'runnable', 1000, 0),
  ]);
  expect([SLEEP, RUNNING, RUNNABLE].map((state) => thread.totals[state])).toEqual([7e9, 2e9, 1e9]);
  expect(at(3)).toEqual(['blocked:sleep 1']);
  expect(at(0)).toEqual(['running 0.333*', 'runnable 0.167*', 'blocked:sleep 0.5*']);
  const all = thread.shares.reduce((sum, share) => sum + share, 0);
  expect(Math.abs(all - 10)).toBeLessThan(0.05);
});

it('a CPU sample is the time of its period', async () => {
  const { thread, at } = await lanesOf([
    profileFromText('app:7;f@n 20', { endMs: END_MS - 1, spanMs: 1000 }),
  ]);
  expect(thread.totals[RUNNING]).toBeCloseTo(1e9, -7);
  expect(at(9)[0]).toMatch(/^running 0?\.?9|^running 1/);
});
