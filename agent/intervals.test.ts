import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Profile } from '../common/profile/model/profile.ts';
import { Intervals } from './intervals.ts';
import type { Interval } from './traces/interval.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Samples that wait, and what became of them. */
function setUp() {
  const seen = {
    waiting: 0,
    drains: 0,
    ended: [] as bigint[],
    warnings: [] as string[],
    pushed: 0,
    isCaughtUp: true,
    isDrained: true,
    lastKtimeNs: 0,
    heap: undefined as string[] | undefined,
  };
  let onDrain = (): void => {};
  const released: Interval[] = [];
  let make = async (_: Interval): Promise<Profile[]> => [{} as Profile];
  const intervals = new Intervals(
    { intervalMs: 5000, jitter: 0 },
    {
      tracer: {
        drain: () => {
          seen.drains++;
          onDrain();
        },
        get isDrained() {
          return seen.isDrained;
        },
        catchUp: async (maxMs) => {
          seen.heap?.push(`catch up within ${maxMs}`);
          return seen.isCaughtUp;
        },
        reportWaiting: () => {},
        native: { monotonicNs: () => 42n },
      },
      traces: {
        get waiting() {
          return seen.waiting;
        },
        takeInterval: () => {
          const interval = { samples: seen.waiting, lastKtimeNs: seen.lastKtimeNs } as Interval;
          seen.waiting = 0;
          return interval;
        },
        release: (interval) => void released.push(interval),
      },
      maker: { make: (interval) => make(interval) },
      threadTimes: { takeProfile: () => undefined },
      liveHeap: {
        get isAskedFor() {
          return seen.heap !== undefined;
        },
        read: () => void seen.heap?.push('read'),
        report: () => void seen.heap?.push('report'),
        leaveOut: () => void seen.heap?.push('left out'),
      },
      sink: { push: () => void seen.pushed++ },
      afterwards: async (endNs) => void seen.ended.push(endNs),
      warn: (message) => void seen.warnings.push(message),
    },
  );
  const onMake = (made: typeof make): void => {
    make = made;
  };
  const atDrain = (act: typeof onDrain): void => {
    onDrain = act;
  };
  return { seen, released, intervals, onMake, atDrain };
}

it('makes the first profile after a second, and then one an interval; none without samples', async () => {
  const { seen, released, intervals } = setUp();
  intervals.start();
  seen.waiting = 3;
  await vi.advanceTimersByTimeAsync(1000);
  expect([seen.pushed, intervals.stats.reported, released.length]).toEqual([1, 3, 1]);
  await vi.advanceTimersByTimeAsync(5000);
  expect([seen.pushed, intervals.stats.reported, released.length]).toEqual([1, 3, 2]);
  expect(seen.ended).toEqual([42n, 42n]);
  intervals.stop();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(seen.ended).toHaveLength(2);
});

it('goes on after an interval that could not be made into a profile, which is released', async () => {
  const { seen, released, intervals, onMake } = setUp();
  onMake(async () => {
    throw new Error('no room');
  });
  seen.waiting = 1;
  await intervals.flush();
  expect(seen.warnings[0]).toMatch(/could not be made into a profile: Error: no room/);
  expect(released).toHaveLength(1);
  expect(intervals.stats).toEqual({ reported: 0, failed: 1 });
  onMake(async () => [{} as Profile]);
  seen.waiting = 2;
  await intervals.flush();
  expect(intervals.stats.reported).toBe(2);
});

it('goes on after a beginning that failed, and says so to who began', async () => {
  const { seen, intervals } = setUp();
  const begin = (): void => {
    throw new Error('no map');
  };
  await expect(intervals.beginAnew(begin)).rejects.toThrow('no map');
  seen.waiting = 1;
  await intervals.flush();
  expect(seen.pushed).toBe(1);
});

it('ends an interval early that is full, and is late when its profile takes longer than the interval', async () => {
  const { seen, intervals, onMake } = setUp();
  seen.waiting = 29_999;
  intervals.flushIfFull();
  expect(seen.drains).toBe(0);
  let finish = (): void => {};
  onMake(() => new Promise((resolve) => (finish = () => resolve([]))));
  seen.waiting = 30_000;
  intervals.flushIfFull();
  await vi.advanceTimersByTimeAsync(5000);
  expect([seen.drains, intervals.isLate]).toEqual([1, false]);
  await vi.advanceTimersByTimeAsync(1);
  expect(intervals.isLate).toBe(true);
  seen.waiting = 30_000;
  intervals.flushIfFull();
  finish();
  await vi.advanceTimersByTimeAsync(0);
  expect([seen.drains, intervals.isLate]).toEqual([1, false]);
});

it('hands on at the end what a record held back', async () => {
  const { seen, intervals, atDrain } = setUp();
  intervals.stop();
  seen.waiting = 1;
  atDrain(() => {
    if (seen.drains < 3) seen.waiting = 1;
  });
  await intervals.finish();
  expect([intervals.stats.reported, seen.waiting, seen.drains]).toEqual([3, 0, 3]);
});

it('reports the live heap once all records that it needs were taken, and leaves it out where they come too late', async () => {
  const { seen, intervals } = setUp();
  seen.heap = [];
  await intervals.flush();
  expect(seen.heap.splice(0)).toEqual(['read', 'catch up within 1000', 'report']);
  seen.isCaughtUp = false;
  await intervals.flush();
  expect(seen.heap).toEqual(['read', 'catch up within 1000', 'left out']);
});

it('says of no more than of what was taken that it is handed on', async () => {
  const { seen, intervals } = setUp();
  [seen.isDrained, seen.lastKtimeNs] = [false, 30];
  await intervals.flush();
  seen.lastKtimeNs = 50;
  await intervals.flush();
  seen.lastKtimeNs = 0;
  await intervals.flush();
  expect(seen.ended.splice(0)).toEqual([30n, 42n, 0n]);
  [seen.heap, seen.isCaughtUp, seen.lastKtimeNs] = [[], false, 31];
  await intervals.flush();
  seen.isCaughtUp = true;
  await intervals.flush();
  intervals.stop();
  await intervals.flush();
  expect(seen.ended).toEqual([31n, 42n, 31n]);
});
