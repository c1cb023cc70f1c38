/**
 * Where threads wait, with --off-cpu: the programs at the scheduler, which nobody loads otherwise, and the map of threads
 * that they keep. docs/off-cpu.md
 */
import type { Native, NativeBpfObject } from '../base/native.ts';
import type { RuntimePlugin } from '../interpreters/contract.ts';
import { Context, EF_WEIGHT_ONE, THREAD, ThreadState } from '../records/records.gen.ts';
import type { OpenObject } from './open-object.ts';
import { loaded, putInSlot } from './program-slots.ts';
import type { Follower } from './samplers.ts';

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

const OBJECT = 'off-cpu.bpf.o';
const THREADS = 'threads';
/** A wait that lasts is reported that often at most. */
const REPORT_AFTER_NS = 1_000_000_000n;

export const weightOf = (probability: number): number =>
  Math.min(Math.round(EF_WEIGHT_ONE / probability), 0xffff_ffff);

/** What runs at each switch, with the maps of it. */
export const openSwitchPrograms = (open: OpenObject, base: NativeBpfObject): NativeBpfObject =>
  open(OBJECT, {
    programs: ['on_switch', 'on_waking', 'report_waiting'],
    context: Context.SWITCH,
    share: [base],
  });

/** What takes the stacks; `share`: a sampler with these runtimes, and the above. */
export const openWaitSampler = (
  open: OpenObject,
  runtimes: readonly RuntimePlugin[],
  share: readonly NativeBpfObject[],
): NativeBpfObject => open(OBJECT, { programs: ['take_wait'], context: Context.SWITCH, runtimes, share });

export class OffCpu implements Follower {
  readonly #native: Native;
  readonly #open: OpenObject;
  readonly #onThreads: OnThreads;
  /** With the maps; undefined once it is stopped. */
  #object: NativeBpfObject | undefined;
  /** What takes the stacks. */
  #sampler: NativeBpfObject | undefined;
  readonly stats = { threads: 0, waiting: 0 };

  /** Loads, but attaches nothing; throws what the kernel says. */
  constructor(native: Native, open: OpenObject, base: NativeBpfObject, onThreads: OnThreads) {
    this.#native = native;
    this.#open = open;
    this.#onThreads = onThreads;
    this.#object = openSwitchPrograms(open, base);
    this.#object.loadSync();
  }

  async follow(runtimes: readonly RuntimePlugin[], share: NativeBpfObject): Promise<void> {
    if (!this.#object) return;
    const wider = await loaded(openWaitSampler(this.#open, runtimes, [share, this.#object]));
    putInSlot(this.#native, wider.mapFd('wait_samplers'), 0, wider.programFd('take_wait'));
    this.#sampler?.close();
    this.#sampler = wider;
  }

  /** From now on waits are counted. */
  start(): void {
    this.#object?.attach('on_switch');
    this.#object?.attach('on_waking');
  }

  /** Makes BPF report waits that last; `isLast`: all that there are. */
  reportWaiting(isLast = false): void {
    if (!this.#object) return;
    const now = this.#native.monotonicNs();
    const program = this.#object.programFd('report_waiting');
    const threads = this.#native.mapReadAll(this.#object.mapFd(THREADS), 4, THREAD.bytes);
    this.#onThreads(threads, now);
    const each = 4 + THREAD.bytes;
    this.stats.threads = threads.length / each;
    this.stats.waiting = 0;
    for (let at = 0; at < threads.length; at += each) {
      if (!isWaiting(threads, at + 4, isLast ? now : now - REPORT_AFTER_NS)) continue;
      this.stats.waiting++;
      this.#native.runProgram(program, BigInt(threads.readUInt32LE(at)));
    }
  }

  /** Nothing is counted any more; what is still waiting was reported. */
  stop(): void {
    this.reportWaiting(true);
    this.#object?.close();
    this.#object = undefined;
  }

  close(): void {
    this.#object?.close();
    this.#object = undefined;
    this.#sampler?.close();
    this.#sampler = undefined;
  }
}

/** Since that time at least, of which nothing was reported yet. */
function isWaiting(threads: Buffer, at: number, sinceNs: bigint): boolean {
  if (threads.readUInt16LE(at + THREAD.state) === ThreadState.RUNNING) return false;
  if (threads.readBigUInt64LE(at + THREAD.traceHash) === 0n) return false;
  return (
    threads.readBigUInt64LE(at + THREAD.sinceNs) <= sinceNs &&
    threads.readBigUInt64LE(at + THREAD.reportedNs) <= sinceNs
  );
}
