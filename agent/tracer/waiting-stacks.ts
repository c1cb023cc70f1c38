/**
 * Stacks of threads that wait already, with --off-cpu: see ebpf/waiting.bpf.c. BPF says which page it wants next of which
 * thread, until the stack is whole: some threads at a time, their pages read in rounds.
 */
import type { Pid } from '../../common/base/brand.ts';
import { nextTurn } from '../../common/base/slices.ts';
import type { Native, NativeBpfObject } from '../base/native.ts';
import {
  Context,
  EF_KEPT_PAGE_BYTES,
  EF_LATE_REQUESTS,
  EF_WEIGHT_ONE,
  LATE_REQUEST,
  LateResult,
  THREAD,
  ThreadState,
} from '../records/records.gen.ts';
import { KeptPages, type ReadPages } from './kept-pages.ts';
import type { OpenObject } from './open-object.ts';
import { loaded } from './program-slots.ts';
import type { SamplerPart } from './sampler-part.ts';

const OBJECT = 'waiting.bpf.o';
/** A thread that waits for less is left to chance. */
const LONG_NS = 1_000_000_000n;
/** Frames lie one behind the other: so many pages of a stack are read at a time. */
const PAGES_AHEAD = 4;
const PAGE = EF_KEPT_PAGE_BYTES;
/** Far from the stack pointer it is not a stack. */
const STACK_BYTES = 8 << 20;
const MAX_ROUNDS = 48;
/** Unwind information of large files takes seconds; so often a stack is asked for. */
const MAX_TRIES = 12;

/** The program that notes who waits already. */
export const openThreadNotes = (open: OpenObject, share: readonly NativeBpfObject[]): NativeBpfObject =>
  open(OBJECT, { programs: ['note_thread'], context: Context.EVENT, share });

/** The one that takes stacks with these runtimes. */
export const openLateStacks = (
  open: OpenObject,
  runtimes: readonly SamplerPart[],
  share: readonly NativeBpfObject[],
): NativeBpfObject => open(OBJECT, { programs: ['take_late'], context: Context.EVENT, runtimes, share });

/** A wait that was asked for. */
interface Known {
  sinceNs: bigint;
  tries: number;
  /** When its stack was taken last, 0: it was not. */
  takenNs: bigint;
}

interface Wanted {
  tid: number;
  pid: Pid;
  known: Known;
}

export interface WaitingStacksOptions {
  native: Native;
  open: OpenObject;
  readPages: ReadPages;
  /** Stacks that are taken at a look, at most. */
  most: number;
  /** Waits of that state alone are sampled; RUNNING: all. */
  state: number;
}

export class WaitingStacks {
  readonly #native: Native;
  readonly #open: OpenObject;
  readonly #readPages: ReadPages;
  readonly #most: number;
  readonly #state: number;
  /** By TID. */
  #known = new Map<number, Known>();
  #object: NativeBpfObject | undefined;
  /** When the present programs came: a stack from before may lack frames of a runtime. */
  #followedNs = 0n;
  /** Runtimes of the present programs, and those that the kernel does not take. */
  #taken: readonly SamplerPart[] = [];
  readonly #refused = new Set<SamplerPart>();
  #beginNs = 0n;
  #running: Promise<number> = Promise.resolve(0);
  readonly stats = { asked: 0, taken: 0, gaveUp: 0, failed: 0, pagesRead: 0 };

  constructor({ native, open, readPages, most, state }: WaitingStacksOptions) {
    this.#native = native;
    this.#open = open;
    this.#readPages = readPages;
    this.#most = most;
    this.#state = state;
  }

  /** Rejects as the kernel says. A runtime that it refuses, as its verifier gives up on its unwinder, is left out. */
  async follow(runtimes: readonly SamplerPart[], share: readonly NativeBpfObject[]): Promise<void> {
    const wider = await this.#load(runtimes, share);
    await this.#running;
    this.#object?.close();
    this.#object = wider;
    this.#followedNs = this.#native.monotonicNs();
  }

  async #load(runtimes: readonly SamplerPart[], share: readonly NativeBpfObject[]): Promise<NativeBpfObject> {
    const taken = runtimes.filter((runtime) => !this.#refused.has(runtime));
    try {
      const object = await loaded(openLateStacks(this.#open, taken, share));
      this.#taken = taken;
      return object;
    } catch (error) {
      const added = taken.filter((runtime) => !this.#taken.includes(runtime));
      if (added.length === 0) throw error;
      for (const runtime of added) this.#refused.add(runtime);
      return this.#load(runtimes, share);
    }
  }

  /** Counts those that wait already. `share`: with the map of threads. */
  noteThreads(share: readonly NativeBpfObject[]): void {
    const object = openThreadNotes(this.#open, share);
    try {
      object.loadSync();
      this.#native.runIterator(object.programFd('note_thread'));
    } finally {
      object.close();
    }
  }

  /**
   * Takes the stacks of those that wait for long and have none, or one that stands for others. `threads`: as the map has
   * them, each with its TID before. `isLast`: there will be no other look. Returns how many have to wait until unwind
   * information is there.
   */
  async look(threads: Buffer, isLast = false): Promise<number> {
    this.#running = this.#running.then(() => this.#take(threads, isLast)).catch(() => this.#failed());
    return this.#running;
  }

  /** From now on: what threads have waited until now without a stack is left out. */
  begin(): void {
    this.#beginNs = this.#native.monotonicNs();
  }

  async close(): Promise<void> {
    await this.#running;
    this.#object?.close();
    this.#object = undefined;
  }

  async #take(threads: Buffer, isLast: boolean): Promise<number> {
    let waiting = 0;
    const wanted = someOf(this.#wanted(threads), this.#most);
    for (let i = 0; i < wanted.length && this.#object; i += EF_LATE_REQUESTS) {
      waiting += await this.#takeSome(this.#object, wanted.slice(i, i + EF_LATE_REQUESTS), isLast);
      await nextTurn();
    }
    return waiting;
  }

  #failed(): number {
    this.stats.failed++;
    return 0;
  }

  #wanted(threads: Buffer): Wanted[] {
    const wanted: Wanted[] = [];
    const known = new Map<number, Known>();
    const nowNs = this.#native.monotonicNs();
    for (let at = 0; at < threads.length; at += 4 + THREAD.bytes) {
      const thread = threads.subarray(at + 4, at + 4 + THREAD.bytes);
      if (!this.#isAskedFor(thread.readUInt16LE(THREAD.state))) continue;
      const tid = thread.readUInt32LE(THREAD.tid);
      const sinceNs = thread.readBigUInt64LE(THREAD.sinceNs);
      const before = this.#known.get(tid);
      const now = before?.sinceNs === sinceNs ? before : { sinceNs, tries: 0, takenNs: 0n };
      if (now === before) known.set(tid, now);
      if (!this.#lacksStack(thread, now, nowNs)) continue;
      known.set(tid, now);
      wanted.push({ tid, pid: thread.readUInt32LE(THREAD.processTgid) as Pid, known: now });
    }
    this.#known = known;
    return wanted;
  }

  #isAskedFor(state: number): boolean {
    return state > ThreadState.RUNNABLE && (this.#state === ThreadState.RUNNING || state === this.#state);
  }

  #lacksStack(thread: Buffer, { sinceNs, takenNs, tries }: Known, nowNs: bigint): boolean {
    const isFromBefore = thread.readUInt16LE(THREAD.isFromBefore) !== 0;
    if (!isFromBefore && nowNs - sinceNs < LONG_NS) return false;
    if (thread.readBigUInt64LE(THREAD.lateSinceNs) === sinceNs) return takenNs < this.#followedNs;
    if (tries >= MAX_TRIES) return false;
    return (
      sinceNs < this.#followedNs ||
      thread.readBigUInt64LE(THREAD.traceHash) === 0n ||
      thread.readUInt16LE(THREAD.isStackCut) !== 0 ||
      thread.readUInt32LE(THREAD.weight) > EF_WEIGHT_ONE
    );
  }

  async #takeSome(object: NativeBpfObject, wanted: readonly Wanted[], isLast: boolean): Promise<number> {
    const requests = object.mapFd('late_stacks');
    const pages = new KeptPages(this.#native, object.mapFd('pages'), this.#readPages);
    const program = object.programFd('take_late');
    for (const { tid, known } of wanted) {
      this.stats.asked++;
      known.tries++;
      this.#native.mapUpdate(requests, keyOf(tid), this.#requestOf(known, isLast), 0);
    }
    let left = wanted;
    for (let round = 0; left.length > 0 && round < MAX_ROUNDS; round++) {
      this.#native.runIterator(program);
      left = left.filter((one) => this.#needsPage(requests, pages, one));
      if (left.length > 0) await nextTurn();
    }
    this.stats.gaveUp += left.length;
    this.stats.pagesRead += pages.read;
    const waiting = wanted.filter(({ tid }) => this.#resultOf(requests, tid) === LateResult.NO_TABLE).length;
    for (const { tid } of wanted) this.#native.mapDelete(requests, keyOf(tid));
    pages.clear();
    return waiting;
  }

  #resultOf(requests: number, tid: number): number | undefined {
    return this.#native
      .mapLookup(requests, keyOf(tid), LATE_REQUEST.bytes)
      ?.readUInt32LE(LATE_REQUEST.result);
  }

  #requestOf({ sinceNs, tries }: Known, isLast: boolean): Buffer {
    const request = Buffer.alloc(LATE_REQUEST.bytes);
    request.writeBigUInt64LE(this.#beginNs, LATE_REQUEST.beginNs);
    request.writeBigUInt64LE(sinceNs, LATE_REQUEST.sinceNs);
    request.writeUInt16LE(isLast || tries >= MAX_TRIES ? 1 : 0, LATE_REQUEST.isLastTry);
    request.writeUInt16LE(sinceNs < this.#followedNs ? 1 : 0, LATE_REQUEST.isAgain);
    return request;
  }

  /** False once it is done, or can't be. */
  #needsPage(requests: number, pages: KeptPages, { tid, pid, known }: Wanted): boolean {
    const request = this.#native.mapLookup(requests, keyOf(tid), LATE_REQUEST.bytes);
    const result = request?.readUInt32LE(LATE_REQUEST.result);
    if (result === LateResult.TAKEN) {
      this.stats.taken++;
      known.takenNs = this.#native.monotonicNs();
    }
    if (!request || result !== LateResult.NO_PAGE) return false;
    const page = Number(request.readBigUInt64LE(LATE_REQUEST.page));
    const sp = Number(request.readBigUInt64LE(LATE_REQUEST.sp));
    const isStack = page >= sp - PAGE && page < sp + STACK_BYTES;
    return pages.add(pid, page, isStack ? PAGES_AHEAD : 1);
  }
}

function keyOf(tid: number): Buffer {
  const key = Buffer.alloc(4);
  key.writeUInt32LE(tid);
  return key;
}

/** At most so many, by chance: whether a wait is among them must not depend on whether it was sampled. */
function someOf<T>(all: T[], most: number): T[] {
  for (let i = 0; i < Math.min(most, all.length); i++) {
    const other = i + Math.floor(Math.random() * (all.length - i));
    [all[i], all[other]] = [all[other]!, all[i]!];
  }
  return all.slice(0, most);
}
