/**
 * Traces by the 64-bit hash that BPF gave them, bounded in bytes. They stand one behind the other in slabs of numbers,
 * outside the JavaScript heap: objects that come by the dozen each second and stay for minutes are what V8's collector
 * spends most on (docs/decisions/traces-and-export/trace-store.md).
 *
 * Where the slabs are full the oldest one leaves: what was sampled since it was written moves to the newest, of the others
 * BPF is told to send them again. BPF sends a trace once and then only its hash, so samples that were under way still find
 * it: a slab that leaves can be read until two further drains of the ring buffer have ended, and every interval that
 * counts samples under its traces was released. Where a trace comes again its words say whether BPF ever used one
 * hash for two traces; then the newer one holds from there on and the older samples keep what they were counted under.
 */
import { type TraceId, toPid, toTraceId } from '../../common/base/brand.ts';
import { OWN_VIEW } from '../processes/root-views.ts';
import { TRACE } from '../records/records.gen.ts';
import type { ProcessIdentity } from '../records/records.ts';
import { HashIndex } from './hash-index.ts';

/** The identity is that of the process in which it was sampled first; others may share it. */
export interface Trace extends Readonly<ProcessIdentity> {
  readonly kernelFrames: number;
  /** Kernel addresses, then the words of the user frames, each as its low and its high half: see ebpf/records.h. */
  readonly u32Pairs: Uint32Array;
  /** Key of the file whose runtime has frames in place of native ones, 0 if none: the words may not name it. */
  readonly runtimeFile: bigint;
}

export interface TraceStoreOptions {
  maxBytes: number;
  /** Makes BPF send the trace again when it is next sampled: its hash as a u32 pair. */
  forget(low: number, high: number): void;
  /** Numbers in a slab, a power of two. */
  slabNumbers?: number;
}

/** The numbers of a trace, of 32 bits each; behind them its words as u32 pairs, then room for the numbers of its frames. */
const HASH_LOW = 0;
const HASH_HIGH = 1;
const TGID = 2;
const EXEC_ID = 3;
const START_LOW = 4;
const START_HIGH = 5;
const RUNTIME_LOW = 6;
const RUNTIME_HIGH = 7;
const KERNEL_FRAMES = 8;
const U32_COUNT = 9;
const IS_SAMPLED = 10;
/** New position, if the trace has moved. */
const MOVED_TO = 11;
/** See {@link TraceStore.setFrames}. */
const GENERATION = 12;
const FRAMES = 13;
const VIEW = 14;
const HEADER = 15;
const NUMBERS_A_WORD = 3;

const SLAB_NUMBERS = 1 << 16;
const MIN_SLABS = 2;
/** Share of a slab that may move out of it, so that evicting it makes room. */
const MAX_MOVED_SHARE = 0.5;
const DRAINS_TO_WAIT = 2;
const STAYS = -1;
/** At the begin of a slab: no trace has the ID 0. */
const UNUSED = 1;

interface Slab {
  /** ID of what stands at its begin. */
  first: number;
  data: Uint32Array<ArrayBuffer>;
  /** The same memory. */
  bytes: Buffer;
  used: number;
  /** The last interval that has samples of its traces. */
  interval: number;
  /** How many have ended since it began to leave, or STAYS. */
  drains: number;
}

export class TraceStore {
  readonly #forget: (low: number, high: number) => void;
  readonly #slabNumbers: number;
  readonly #maxSlabs: number;
  readonly #maxWords: number;
  /** By number; those that are gone are undefined. */
  readonly #slabs: (Slab | undefined)[] = [];
  /** Oldest first; traces are added to the last one. */
  readonly #staying: Slab[] = [];
  #leaving: Slab[] = [];
  readonly #index = new HashIndex(
    (id, low, high) => this.#number(id, HASH_LOW) === low >>> 0 && this.#number(id, HASH_HIGH) === high,
  );
  /** The one that samples are counted in. */
  #interval = 0;
  #released = 0;
  readonly stats = { added: 0, repeated: 0, conflicts: 0, moved: 0, evicted: 0 };

  constructor({ maxBytes, forget, slabNumbers = SLAB_NUMBERS }: TraceStoreOptions) {
    this.#forget = forget;
    this.#slabNumbers = slabNumbers;
    this.#maxSlabs = Math.max(MIN_SLABS, Math.floor(maxBytes / (slabNumbers * 4)));
    this.#maxWords = Math.floor((slabNumbers - 1 - HEADER) / NUMBERS_A_WORD);
  }

  /** Traces that a hash leads to. */
  get size(): number {
    return this.#index.size;
  }

  get bytes(): number {
    return (this.#staying.length + this.#leaving.length) * this.#slabNumbers * 4;
  }

  /** Takes a trace record; the same trace again (BPF's own cache dropped it) changes nothing. */
  add(buffer: Buffer, at: number, size: number): TraceId {
    const low = buffer.readUInt32LE(at + TRACE.traceHash);
    const high = buffer.readUInt32LE(at + TRACE.traceHash + 4);
    const room = Math.max(0, Math.floor((size - TRACE.frames) / 8));
    const words = Math.min(buffer.readUInt16LE(at + TRACE.words), room, this.#maxWords);
    const kernelFrames = Math.min(buffer.readUInt16LE(at + TRACE.kernelFrames), words);
    const known = this.#index.get(low, high);
    if (known >= 0 && this.#hasWords(known, kernelFrames, words, buffer, at + TRACE.frames)) {
      this.stats.repeated++;
      // it is wanted again: back from the way out
      return this.#slab(known).drains === STAYS ? toTraceId(known) : this.#move(known);
    }
    if (known >= 0) this.stats.conflicts++;
    this.stats.added++;
    const id = this.#allocate(HEADER + words * NUMBERS_A_WORD);
    const { data, bytes } = this.#slab(id);
    const to = this.#offset(id);
    data.fill(0, to, to + HEADER);
    data[to + HASH_LOW] = low;
    data[to + HASH_HIGH] = high;
    data[to + TGID] = buffer.readUInt32LE(at + TRACE.processTgid);
    data[to + EXEC_ID] = buffer.readUInt32LE(at + TRACE.processExecId);
    data[to + START_LOW] = buffer.readUInt32LE(at + TRACE.processStartBoottimeNs);
    data[to + START_HIGH] = buffer.readUInt32LE(at + TRACE.processStartBoottimeNs + 4);
    data[to + RUNTIME_LOW] = buffer.readUInt32LE(at + TRACE.runtimeFile);
    data[to + RUNTIME_HIGH] = buffer.readUInt32LE(at + TRACE.runtimeFile + 4);
    data[to + KERNEL_FRAMES] = kernelFrames;
    data[to + U32_COUNT] = words * 2;
    buffer.copy(bytes, (to + HEADER) * 4, at + TRACE.frames, at + TRACE.frames + words * 8);
    this.#index.set(low, high, id);
    return id;
  }

  /** The trace of a sample that counts in the current interval; undefined where it never came, or is gone. */
  sampled(low: number, high: number): TraceId | undefined {
    const id = this.#index.get(low, high);
    if (id < 0) return undefined;
    const slab = this.#slab(id);
    slab.data[this.#offset(id) + IS_SAMPLED] = 1;
    slab.interval = this.#interval;
    return toTraceId(id);
  }

  /** Does the trace that stood there stand here now? */
  hasMoved(from: TraceId, to: TraceId): boolean {
    let id: number = from;
    while (id !== to && this.#number(id, MOVED_TO) !== 0) id = this.#number(id, MOVED_TO);
    return id === to;
  }

  /** A view: valid as long as the trace may be counted under. */
  read(id: TraceId): Trace {
    const { data } = this.#slab(id);
    const at = this.#offset(id);
    return {
      pid: toPid(data[at + TGID]!),
      execId: data[at + EXEC_ID]!,
      startBoottimeNs: u64(data[at + START_LOW]!, data[at + START_HIGH]!),
      kernelFrames: data[at + KERNEL_FRAMES]!,
      u32Pairs: data.subarray(at + HEADER, at + HEADER + data[at + U32_COUNT]!),
      runtimeFile: u64(data[at + RUNTIME_LOW]!, data[at + RUNTIME_HIGH]!),
    };
  }

  /**
   * Keeps the numbers of its frames, at most one a word, for as long as numbers mean what they do in `generation` (not 0).
   */
  setFrames(id: TraceId, frames: ArrayLike<number>, generation: number, view = OWN_VIEW): void {
    const { data } = this.#slab(id);
    const at = this.#offset(id);
    data[at + GENERATION] = generation;
    data[at + FRAMES] = frames.length;
    data[at + VIEW] = view;
    data.set(frames, at + HEADER + data[at + U32_COUNT]!);
  }

  hasFrames(id: TraceId, generation: number): boolean {
    return this.#number(id, GENERATION) === generation;
  }

  /** In which view the frames were named. */
  viewOf(id: TraceId): number {
    return this.#number(id, VIEW);
  }

  frameCount(id: TraceId): number {
    return this.#number(id, FRAMES);
  }

  /** Replaces `into` with what `map` makes of the frames' numbers, leaf first. */
  mapFrames(id: TraceId, into: Uint32Array, map: (frame: number) => number): void {
    const { data } = this.#slab(id);
    const at = this.#offset(id);
    const from = at + HEADER + data[at + U32_COUNT]!;
    for (let i = 0; i < into.length; i++) into[i] = map(data[from + i]!);
  }

  /** Samples are counted in it from now on. Returns its number. */
  beginInterval(): number {
    return ++this.#interval;
  }

  /** Nobody reads traces any more for what was counted until the end of that interval. */
  release(interval: number): void {
    this.#released = interval;
  }

  /** A drain has emptied the ring buffer. */
  drained(): void {
    if (this.#leaving.length === 0) return;
    for (const slab of this.#leaving) slab.drains++;
    const isGone = ({ drains, interval }: Slab): boolean =>
      drains > DRAINS_TO_WAIT && interval <= this.#released;
    for (const slab of this.#leaving) if (isGone(slab)) this.#drop(slab);
    this.#leaving = this.#leaving.filter((slab) => !isGone(slab));
  }

  /** Makes room: the older half leaves, a slab a step, in which BPF is told. */
  *dropHalf(): Generator<void, void> {
    const target = Math.max(1, Math.floor(this.#staying.length / 2));
    while (this.#staying.length > target) {
      this.#leave(0);
      yield;
    }
  }

  #allocate(numbers: number): TraceId {
    let slab = this.#staying.at(-1);
    while (!slab || slab.used + numbers > this.#slabNumbers) {
      if (this.#staying.length >= this.#maxSlabs) this.#leave(this.#slabNumbers * MAX_MOVED_SHARE);
      else this.#addSlab();
      slab = this.#staying.at(-1);
    }
    const id = slab.first + slab.used;
    slab.used += numbers;
    return toTraceId(id);
  }

  #addSlab(): void {
    const data = new Uint32Array(this.#slabNumbers);
    const free = this.#slabs.indexOf(undefined);
    const number = free < 0 ? this.#slabs.length : free;
    const first = number * this.#slabNumbers;
    const bytes = Buffer.from(data.buffer);
    const slab = { first, data, bytes, used: UNUSED, interval: 0, drains: STAYS };
    this.#slabs[number] = slab;
    this.#staying.push(slab);
  }

  /** The oldest one; what was sampled since it was written moves, up to so many numbers. */
  #leave(maxMoved: number): void {
    const slab = this.#staying.shift()!;
    slab.drains = 0;
    this.#leaving.push(slab);
    let left = maxMoved;
    for (const id of tracesIn(slab)) {
      if (!this.#isCurrent(id)) continue;
      const at = this.#offset(id);
      const numbers = sizeOf(slab.data, at);
      if (slab.data[at + IS_SAMPLED] === 1 && numbers <= left) {
        left -= numbers;
        this.#move(id);
      } else {
        this.stats.evicted++;
        this.#forget(slab.data[at + HASH_LOW]!, slab.data[at + HASH_HIGH]!);
      }
    }
  }

  /** To the newest slab. */
  #move(old: number): TraceId {
    const from = this.#slab(old);
    const { data } = from;
    const at = this.#offset(old);
    const numbers = sizeOf(data, at);
    const id = this.#allocate(numbers);
    const to = this.#slab(id);
    to.data.set(data.subarray(at, at + numbers), this.#offset(id));
    to.data[this.#offset(id) + IS_SAMPLED] = 0;
    data[at + MOVED_TO] = id;
    // who comes from there may ask until then
    to.interval = Math.max(to.interval, from.interval);
    this.#index.set(data[at + HASH_LOW]!, data[at + HASH_HIGH]!, id);
    this.stats.moved++;
    return id;
  }

  #drop(slab: Slab): void {
    for (const id of tracesIn(slab))
      if (this.#isCurrent(id)) this.#index.delete(this.#number(id, HASH_LOW), this.#number(id, HASH_HIGH));
    this.#slabs[slab.first / this.#slabNumbers] = undefined;
  }

  /** It has not moved, and no other trace took its hash. */
  #isCurrent(id: number): boolean {
    return this.#index.get(this.#number(id, HASH_LOW), this.#number(id, HASH_HIGH)) === id;
  }

  #hasWords(id: number, kernelFrames: number, words: number, buffer: Buffer, from: number): boolean {
    const { data, bytes } = this.#slab(id);
    const at = this.#offset(id);
    if (data[at + KERNEL_FRAMES] !== kernelFrames || data[at + U32_COUNT] !== words * 2) return false;
    const own = (at + HEADER) * 4;
    return buffer.compare(bytes, own, own + words * 8, from, from + words * 8) === 0;
  }

  #number(id: number, field: number): number {
    return this.#slab(id).data[this.#offset(id) + field]!;
  }

  #slab(id: number): Slab {
    return this.#slabs[Math.floor(id / this.#slabNumbers)]!;
  }

  #offset(id: number): number {
    return id & (this.#slabNumbers - 1);
  }
}

/** Numbers that the trace at a position takes. */
const sizeOf = (data: Uint32Array, at: number): number =>
  HEADER + (data[at + U32_COUNT]! / 2) * NUMBERS_A_WORD;

function* tracesIn({ first, data, used }: Slab): Generator<TraceId> {
  for (let at = UNUSED; at < used; at += sizeOf(data, at)) yield toTraceId(first + at);
}

const u64 = (low: number, high: number): bigint => (BigInt(high) << 32n) | BigInt(low);
