/**
 * Where threads wait, with --off-cpu: the programs at the scheduler, which nobody loads otherwise, and the map of threads
 * that they keep. docs/off-cpu.md
 */
import type { Native, NativeBpfObject } from '../base/native.ts';
import { Context, EF_WEIGHT_ONE, THREAD, ThreadState } from '../records/records.gen.ts';
import type { ReadPages } from './kept-pages.ts';
import type { OpenObject } from './open-object.ts';
import { loaded, putInSlot } from './program-slots.ts';
import type { SamplerPart } from './sampler-part.ts';
import type { Follower } from './samplers.ts';
import { WaitingStacks } from './waiting-stacks.ts';

export interface OffCpuOptions {
  /** Of each wait to have its stack taken; undefined: chosen for each wait, within the budget. */
  probability?: number | undefined;
  /** Stacks a second on each CPU. */
  budget: number;
  /** Waits for locks alone are sampled, and the times of threads are not told. */
  isOfLocks?: boolean;
}

/** All threads as the map has them, each with its TID before; `nowNs`, of CLOCK_MONOTONIC, is from before they were read. */
export type OnThreads = (threads: Buffer, nowNs: bigint) => void;

export interface OffCpuParts {
  native: Native;
  open: OpenObject;
  base: NativeBpfObject;
  onThreads?: OnThreads | undefined;
  readPages?: ReadPages | undefined;
  warn: (message: string) => void;
}

const OBJECT = 'off-cpu.bpf.o';
const THREADS = 'threads';
/** So many are read from the map only where times are reported. */
const MANY_THREADS = 4096;
/** A wait that lasts is reported that often at most. */
const REPORT_AFTER_NS = 1_000_000_000n;

/** Of waits: that alone is sampled; RUNNING: all are. */
export const sampledState = ({ isOfLocks }: OffCpuOptions): number =>
  isOfLocks ? ThreadState.LOCK : ThreadState.RUNNING;

export const weightOf = (probability: number): number =>
  Math.min(Math.round(EF_WEIGHT_ONE / probability), 0xffff_ffff);

/** What runs at each switch, with the maps of it. */
export const openSwitchPrograms = (open: OpenObject, base: NativeBpfObject): NativeBpfObject =>
  open(OBJECT, {
    programs: ['on_switch', 'on_waking', 'on_renumbered', 'report_waiting'],
    context: Context.SWITCH,
    share: [base],
  });

/** What takes the stacks; `share`: a sampler with these runtimes, and the above. */
export const openWaitSampler = (
  open: OpenObject,
  runtimes: readonly SamplerPart[],
  share: readonly NativeBpfObject[],
): NativeBpfObject => open(OBJECT, { programs: ['take_wait'], context: Context.SWITCH, runtimes, share });

export class OffCpu implements Follower {
  readonly #native: Native;
  readonly #open: OpenObject;
  readonly #onThreads: OnThreads;
  readonly #warn: (message: string) => void;
  /** Undefined where the kernel does not take its programs. */
  #waiting: WaitingStacks | undefined;
  /** With the maps; undefined once it is stopped. */
  #object: NativeBpfObject | undefined;
  /** What takes the stacks. */
  #sampler: NativeBpfObject | undefined;
  readonly stats = { threads: 0, waiting: 0 };

  /** Loads, but attaches nothing; throws what the kernel says. */
  constructor(options: OffCpuOptions, { native, open, base, onThreads, readPages, warn }: OffCpuParts) {
    this.#native = native;
    this.#open = open;
    this.#onThreads = onThreads ?? (() => {});
    this.#warn = warn;
    this.#object = openSwitchPrograms(open, base);
    this.#object.loadSync();
    const state = sampledState(options);
    this.#waiting = readPages && new WaitingStacks({ native, open, readPages, most: options.budget, state });
  }

  get waitingStats() {
    return this.#waiting?.stats;
  }

  async follow(runtimes: readonly SamplerPart[], share: NativeBpfObject): Promise<void> {
    const object = this.#object;
    if (!object) return;
    const wider = await loaded(openWaitSampler(this.#open, runtimes, [share, object]));
    // stopped meanwhile
    if (!this.#object) return wider.close();
    putInSlot(this.#native, wider.mapFd('wait_samplers'), 0, wider.programFd('take_wait'));
    this.#sampler?.close();
    this.#sampler = wider;
    await this.#orWithout(() => this.#waiting?.follow(runtimes, [share, object]));
  }

  /** From now on waits are counted. */
  async start(): Promise<void> {
    if (!this.#object) return;
    this.#object.attach('on_switch');
    this.#object.attach('on_waking');
    this.#object.attach('on_renumbered');
    await this.#orWithout(() => this.#waiting?.noteThreads([this.#object!]));
  }

  /** A kernel that refuses this still counts, and samples, what waits from now on. */
  async #orWithout(load: () => Promise<void> | undefined | void): Promise<void> {
    try {
      await load();
    } catch (error) {
      this.#waiting = undefined;
      this.#warn(
        `threads that wait already have no stacks until they run: the kernel refused what takes them (${(error as Error).message})`,
      );
    }
  }

  /** Once a second: the sooner a long wait has its own stack, the less of it is left to chance. */
  get isWorthALook(): boolean {
    return this.stats.threads < MANY_THREADS;
  }

  /** Takes stacks of threads that wait; returns how many have to wait until unwind information is there. */
  async takeWaiting(): Promise<number> {
    return (this.#object && (await this.#waiting?.look(this.#readThreads(this.#object)))) ?? 0;
  }

  #readThreads(object: NativeBpfObject): Buffer {
    return this.#native.mapReadAll(object.mapFd(THREADS), 4, THREAD.bytes);
  }

  /** What is waited from now on is asked for: what was waited until now is reported first, or left out. */
  begin(): void {
    this.#report(true);
    this.#waiting?.begin();
  }

  /** Makes BPF report waits that last. */
  reportWaiting(): void {
    const threads = this.#report(false);
    if (threads) void this.#waiting?.look(threads);
  }

  /** `all`: those as well that were reported a moment ago. Returns the threads. */
  #report(all: boolean): Buffer | undefined {
    if (!this.#object) return undefined;
    const now = this.#native.monotonicNs();
    const program = this.#object.programFd('report_waiting');
    const threads = this.#readThreads(this.#object);
    this.#onThreads(threads, now);
    const each = 4 + THREAD.bytes;
    this.stats.threads = threads.length / each;
    this.stats.waiting = 0;
    for (let at = 0; at < threads.length; at += each) {
      if (!isWaiting(threads, at + 4, all ? now : now - REPORT_AFTER_NS)) continue;
      this.stats.waiting++;
      this.#native.runProgram(program, BigInt(threads.readUInt32LE(at)));
    }
    return threads;
  }

  /** Nothing is counted any more; what is still waiting was reported. */
  async stop(): Promise<void> {
    if (this.#object) await this.#waiting?.look(this.#readThreads(this.#object), true);
    this.#report(true);
    this.#object?.close();
    this.#object = undefined;
  }

  async close(): Promise<void> {
    await this.#waiting?.close();
    this.#object?.close();
    this.#object = undefined;
    this.#sampler?.close();
    this.#sampler = undefined;
  }
}

/** Since that time at least, or since before the agent came, and nothing was reported of it since. */
function isWaiting(threads: Buffer, at: number, untilNs: bigint): boolean {
  if (threads.readUInt16LE(at + THREAD.state) === ThreadState.RUNNING) return false;
  const sinceNs = threads.readBigUInt64LE(at + THREAD.sinceNs);
  const hasStack =
    threads.readBigUInt64LE(at + THREAD.traceHash) !== 0n ||
    threads.readBigUInt64LE(at + THREAD.lateSinceNs) === sinceNs;
  const isFromBefore = threads.readUInt16LE(at + THREAD.isFromBefore) !== 0;
  return (
    hasStack &&
    (sinceNs <= untilNs || isFromBefore) &&
    threads.readBigUInt64LE(at + THREAD.reportedNs) <= untilNs
  );
}
