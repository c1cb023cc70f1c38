import { describe, expect, it } from 'vitest';
import { emptyProcess, type Profile } from '../../common/profile/model/profile.ts';
import { THREAD_STATES } from '../../common/profile/model/thread-types.ts';
import { THREAD, ThreadState } from '../records/records.gen.ts';
import { ThreadTimes } from './thread-times.ts';

interface Thread {
  tid: number;
  firstNs?: bigint;
  state: number;
  sinceNs: bigint;
  execNs?: bigint;
  wokenNs?: bigint;
  times: Partial<Record<keyof typeof ThreadState, number>>;
  torn?: boolean;
}

/** As an entry of the map: the TID, and the thread behind it. */
function entry({
  tid,
  firstNs = 1n,
  state,
  sinceNs,
  execNs = 0n,
  wokenNs = 0n,
  times,
  torn = false,
}: Thread): Buffer {
  const buffer = Buffer.alloc(4 + THREAD.bytes);
  const at = 4;
  buffer.writeUInt32LE(tid);
  buffer.writeUInt32LE(tid, at + THREAD.tid);
  buffer.writeUInt16LE(state, at + THREAD.state);
  buffer.writeUInt32LE(torn ? 8 : 7, at + THREAD.begunVersion);
  buffer.writeUInt32LE(7, at + THREAD.endedVersion);
  buffer.writeBigUInt64LE(firstNs, at + THREAD.firstNs);
  buffer.writeBigUInt64LE(sinceNs, at + THREAD.sinceNs);
  buffer.writeBigUInt64LE(execNs, at + THREAD.execNs);
  buffer.writeBigUInt64LE(wokenNs, at + THREAD.wokenNs);
  buffer.writeUInt32LE(42, at + THREAD.processTgid);
  buffer.write('worker', at + THREAD.comm);
  for (const [name, ns] of Object.entries(times))
    buffer.writeBigUInt64LE(
      BigInt(ns),
      at + THREAD.timesNs + ThreadState[name as keyof typeof ThreadState] * 8,
    );
  return buffer;
}

const make = (onCpuNs: (tid: number) => bigint | undefined = () => undefined): ThreadTimes =>
  new ThreadTimes({
    processes: { get: (pid) => ({ ...emptyProcess(), pid }) },
    host: {},
    unixOffsetNs: () => 1000n,
    onCpuNs,
  });

const text = (profile: Profile | undefined): string[] =>
  (profile?.samples ?? []).map(({ stack, tid, value, process }) => {
    const [location] = profile!.stacks[stack]!;
    const { func } = profile!.locations[location!]!.lines[0]!;
    const { pid, attributes } = profile!.processes[process]!;
    expect(attributes).toContain(profile!.functions[func]!.name.slice(1, -1));
    return `${pid}/${tid} ${profile!.functions[func]!.name} ${value}`;
  });

describe('times of threads', () => {
  it('have the states of BPF by their numbers', () => {
    const names = Object.entries(ThreadState)
      .sort(([, a], [, b]) => a - b)
      .map(([name]) => name.toLowerCase().replace('_', '-'));
    expect(THREAD_STATES.map((state) => state.replace('blocked:', ''))).toEqual(names);
  });

  it('are what was added since the last profile, the present state included', () => {
    const times = make();
    times.onThreads(
      entry({ tid: 7, state: ThreadState.LOCK, sinceNs: 100n, times: { RUNNING: 30, SLEEP: 5 } }),
      140n,
    );
    expect(text(times.takeProfile(140n))).toEqual([
      '42/7 [running] 30',
      '42/7 [blocked:lock] 40',
      '42/7 [blocked:sleep] 5',
    ]);
    times.onThreads(
      entry({
        tid: 7,
        state: ThreadState.RUNNING,
        sinceNs: 160n,
        times: { RUNNING: 30, SLEEP: 5, LOCK: 60 },
      }),
      200n,
    );
    const profile = times.takeProfile(200n);
    expect(text(profile)).toEqual(['42/7 [running] 40', '42/7 [blocked:lock] 20']);
    expect([profile!.timeUnixNano, profile!.durationNano]).toEqual([1140n, 61n]);
    expect(profile!.samples[0]!.timestamps).toEqual([1200n]);
    expect(times.takeProfile(210n)).toBeUndefined();
  });

  it('tell a wait from the time for a CPU behind it', () => {
    const times = make();
    const thread = { tid: 7, state: ThreadState.DISK, sinceNs: 100n, wokenNs: 110n, times: {} };
    times.onThreads(entry(thread), 150n);
    expect(text(times.takeProfile(150n))).toEqual(['42/7 [runnable] 40', '42/7 [blocked:disk] 10']);
  });

  it('do not have a thread run on that left by a switch that nobody was told of', () => {
    const onCpu = new Map([
      [7, 1_050n],
      [8, 30_000_000_000n],
    ]);
    const times = make((tid) => onCpu.get(tid));
    const entries = [7, 8, 9].map((tid) =>
      entry({ tid, state: ThreadState.RUNNING, sinceNs: 100n, execNs: 1_000n, times: {} }),
    );
    times.onThreads(Buffer.concat(entries), 40_000_000_100n);
    expect(text(times.takeProfile(40_000_000_100n))).toEqual([
      '42/7 [running] 50',
      '42/7 [blocked:other] 39999999950',
      '42/8 [running] 40000000000',
      '42/9 [running] 40000000000',
    ]);
  });

  it('have the rest of threads that end, and know another one of the same TID', () => {
    const times = make();
    times.onThreads(entry({ tid: 7, state: ThreadState.RUNNING, sinceNs: 1n, times: {} }), 11n);
    expect(text(times.takeProfile(11n))).toEqual(['42/7 [running] 10']);
    // the map has its successor before the record of its end is read
    times.onThreads(
      entry({ tid: 7, firstNs: 30n, state: ThreadState.RUNNING, sinceNs: 30n, times: {} }),
      32n,
    );
    times.onThread(
      entry({ tid: 7, state: ThreadState.RUNNING, sinceNs: 25n, times: { RUNNING: 24 } }),
      4,
      THREAD.bytes,
    );
    expect(text(times.takeProfile(32n))).toEqual(['42/7 [running] 14', '42/7 [running] 2']);
    expect(times.stats.reported).toBe(3);
  });

  it('leave out what was written while it was read, until the next time', () => {
    const times = make();
    const thread = { tid: 7, state: ThreadState.RUNNING, sinceNs: 1n, times: {} };
    times.onThreads(entry({ ...thread, torn: true }), 11n);
    expect(times.takeProfile(11n)).toBeUndefined();
    times.onThreads(entry(thread), 21n);
    expect(text(times.takeProfile(21n))).toEqual(['42/7 [running] 20']);
    expect(times.stats.torn).toBe(1);
  });

  it('forget threads that are gone', () => {
    const times = make();
    times.onThreads(entry({ tid: 7, state: ThreadState.RUNNING, sinceNs: 1n, times: {} }), 11n);
    times.takeProfile(11n);
    for (const now of [21n, 31n, 41n]) {
      times.onThreads(
        entry({ tid: 8, firstNs: 12n, state: ThreadState.RUNNING, sinceNs: 12n, times: {} }),
        now,
      );
      times.takeProfile(now);
    }
    times.takeProfile(51n);
    expect(times.stats.threads).toBe(1);
  });
});
