/**
 * How long each thread was in which state, exactly: BPF adds to the times at each switch, here the differences from
 * interval to interval become a profile whose stacks are the states.
 */
import { type Pid, toPid } from '../../common/base/brand.ts';
import { attributesText, joinAttributes } from '../../common/profile/model/attributes.ts';
import { emptyProfile, type Process, type Profile } from '../../common/profile/model/profile.ts';
import { THREAD_STATE, THREAD_STATES } from '../../common/profile/model/thread-types.ts';
import { EF_THREAD_STATES, Origin, PROFILE_TYPES, THREAD, ThreadState } from '../records/records.gen.ts';
import { type ProcessIdentity, readComm } from '../records/records.ts';

const KEY_BYTES = 4;
/** Attributes of each state. */
const STATES = THREAD_STATES.map((name) => attributesText([[THREAD_STATE, name]]));
const ENTRY_BYTES = KEY_BYTES + THREAD.bytes;
/** Of a thread that runs for so long without a switch the scheduler is asked. */
const LONG_RUN_NS = 20e6;

export interface ThreadTimesOptions {
  processes: { get(pid: Pid, execId: number, startBoottimeNs: bigint): Process };
  /** Attributes of the host. */
  host: Record<string, string>;
  unixOffsetNs(): bigint;
  /** How long a thread has been on a CPU by the scheduler's own count, nanoseconds; undefined: it has ended. */
  onCpuNs(tid: number): bigint | undefined;
}

interface Thread {
  identity: ProcessIdentity;
  tid: number;
  name: string;
  /** Nanoseconds in each state, as they were told last. */
  told: Float64Array;
  /** Since then. */
  since: Float64Array;
  /** The newest reading of the map that it was in. */
  reading: number;
}

export class ThreadTimes {
  readonly #options: ThreadTimesOptions;
  /** By TID and the time when it was first seen. */
  readonly #threads = new Map<string, Thread>();
  #reading = 0;
  #toldNs: bigint | undefined;
  /** `torn`: BPF wrote to a thread while it was read; it is read again in the next interval. `reported`: times that were handed on. */
  readonly stats = { threads: 0, torn: 0, reported: 0 };

  constructor(options: ThreadTimesOptions) {
    this.#options = options;
  }

  /** All threads that there are, as the map has them: TID and ef_thread; `nowNs` is from before it was read. */
  onThreads(threads: Buffer, nowNs: bigint): void {
    this.#reading++;
    this.#toldNs ??= nowNs;
    for (let at = KEY_BYTES; at < threads.length; at += ENTRY_BYTES) {
      const isWhole =
        threads.readUInt32LE(at + THREAD.begunVersion) === threads.readUInt32LE(at + THREAD.endedVersion);
      if (isWhole) this.#add(threads, at, nowNs);
      else this.stats.torn++;
    }
  }

  /** A thread that has ended. */
  onThread(buffer: Buffer, at: number, size: number): void {
    if (size < THREAD.bytes) return;
    this.#add(buffer, at, undefined);
  }

  /** What has passed since the last call; undefined: nothing was counted. */
  takeProfile(nowNs: bigint): Profile | undefined {
    const counted = [...this.#threads.values()].filter(({ since }) => since.some((ns) => ns > 0));
    this.stats.threads = this.#threads.size;
    if (counted.length === 0 || this.#toldNs === undefined) return undefined;
    const profile = this.#profileOf(counted, this.#toldNs, nowNs);
    this.stats.reported += profile.samples.length;
    this.#toldNs = nowNs;
    for (const { since } of counted) since.fill(0);
    // those that have ended
    for (const [key, { reading }] of this.#threads)
      if (reading < this.#reading - 1) this.#threads.delete(key);
    return profile;
  }

  /** `nowNs`: it goes on until then; undefined: it has ended. */
  #add(buffer: Buffer, at: number, nowNs: bigint | undefined): void {
    const thread = this.#threadOf(buffer, at);
    const times = timesOf(buffer, at);
    if (nowNs !== undefined) addPresent(times, buffer, at, nowNs, this.#options.onCpuNs);
    for (let state = 0; state < EF_THREAD_STATES; state++) {
      // less than before: it was read a moment too early, and comes again
      const ns = Math.max(0, times[state]! - thread.told[state]!);
      thread.since[state]! += ns;
      thread.told[state]! += ns;
    }
    thread.reading = this.#reading;
    thread.name = readComm(buffer, at + THREAD.comm);
  }

  #threadOf(buffer: Buffer, at: number): Thread {
    const tid = buffer.readUInt32LE(at + THREAD.tid);
    const key = `${tid}/${buffer.readBigUInt64LE(at + THREAD.firstNs)}`;
    let thread = this.#threads.get(key);
    if (!thread) {
      thread = {
        identity: {
          pid: toPid(buffer.readUInt32LE(at + THREAD.processTgid)),
          execId: buffer.readUInt32LE(at + THREAD.processExecId),
          startBoottimeNs: buffer.readBigUInt64LE(at + THREAD.processStartBoottimeNs),
        },
        tid,
        name: '',
        told: new Float64Array(EF_THREAD_STATES),
        since: new Float64Array(EF_THREAD_STATES),
        reading: this.#reading,
      };
      this.#threads.set(key, thread);
    }
    return thread;
  }

  #profileOf(threads: readonly Thread[], beginNs: bigint, endNs: bigint): Profile {
    const { host, unixOffsetNs } = this.#options;
    const offsetNs = unixOffsetNs();
    const profile = emptyProfile();
    profile.type = { ...PROFILE_TYPES[Origin.THREAD_TIME], period: 0n };
    profile.host = host;
    profile.timeUnixNano = beginNs + offsetNs;
    // one more than the samples, so that every timestamp lies inside
    profile.durationNano = endNs - beginNs + 1n;
    addStates(profile);
    const processes = new Map<string, number>();
    for (const { identity, tid, name, since } of threads) {
      for (let state = 0; state < EF_THREAD_STATES; state++) {
        const value = since[state]!;
        if (value === 0) continue;
        profile.samples.push({
          stack: state + 1,
          process: this.#processIn(profile, processes, identity, state),
          ...{ tid, threadName: name, cpu: -1, value, timestamps: [endNs + offsetNs], values: [value] },
        });
      }
    }
    return profile;
  }

  #processIn(
    profile: Profile,
    indices: Map<string, number>,
    { pid, execId, startBoottimeNs }: ProcessIdentity,
    state: number,
  ): number {
    const key = `${pid}/${execId}/${startBoottimeNs}/${state}`;
    const known = indices.get(key);
    if (known !== undefined) return known;
    const process = this.#options.processes.get(pid, execId, startBoottimeNs);
    const attributes = joinAttributes(process.attributes ?? '', STATES[state]!);
    const index = profile.processes.push({ ...process, attributes }) - 1;
    indices.set(key, index);
    return index;
  }
}

/** The stack of state i has the index i + 1. */
function addStates({ functions, locations, stacks }: Profile): void {
  for (const state of THREAD_STATES) {
    const func = functions.push({ name: `[${state}]`, systemName: '', filename: '', startLine: 0 }) - 1;
    const lines = [{ func, line: 0, column: 0 }];
    const location = locations.push({ mapping: 0, address: 0n, frameType: 'kernel', lines }) - 1;
    stacks.push(Uint32Array.of(location));
  }
}

function timesOf(buffer: Buffer, at: number): Float64Array {
  const times = new Float64Array(EF_THREAD_STATES);
  for (let state = 0; state < EF_THREAD_STATES; state++)
    times[state] = Number(buffer.readBigUInt64LE(at + THREAD.timesNs + state * 8));
  return times;
}

/** Adds the time since the latest switch. */
function addPresent(
  times: Float64Array,
  buffer: Buffer,
  at: number,
  nowNs: bigint,
  onCpuNs: ThreadTimesOptions['onCpuNs'],
): void {
  const state = buffer.readUInt16LE(at + THREAD.state);
  const since = Number(buffer.readBigUInt64LE(at + THREAD.sinceNs));
  const woken = Number(buffer.readBigUInt64LE(at + THREAD.wokenNs));
  const now = Math.max(Number(nowNs), since);
  if (state === ThreadState.RUNNING) {
    const ran = now - since > LONG_RUN_NS ? runOf(buffer, at, now - since, onCpuNs) : now - since;
    times[state]! += ran;
    times[ThreadState.OTHER]! += now - since - ran;
    return;
  }
  const end = state !== ThreadState.RUNNABLE && woken > since ? Math.min(woken, now) : now;
  times[state]! += end - since;
  times[ThreadState.RUNNABLE]! += now - end;
}

/**
 * How long a thread really ran that is taken for running since: a kernel may tell of no switch away from it. The scheduler leaves
 * out interrupts and what a hypervisor took, so only much less is less.
 */
function runOf(buffer: Buffer, at: number, most: number, onCpuNs: ThreadTimesOptions['onCpuNs']): number {
  const onCpu = onCpuNs(buffer.readUInt32LE(at + THREAD.tid));
  const ran = onCpu === undefined ? most : Number(onCpu - buffer.readBigUInt64LE(at + THREAD.execNs));
  return ran < most / 2 ? Math.max(0, ran) : most;
}
