/**
 * Traces by the 64-bit hash that BPF gave them, bounded in bytes.
 *
 * BPF sends a trace once and then only its hash, so a trace may be dropped here only after BPF has been told to
 * send it again, and samples that were under way by then still find it: it waits in `#leaving` until two further
 * drains of the ring buffer have ended. Where a trace comes again its words tell whether BPF ever used one hash for
 * two traces; then the newer one holds from there on and the older samples keep what they were counted under.
 */
import { LRUCache } from 'lru-cache';
import { NO_OPTIONS } from '../../common/base/lru-options.ts';
import type { ProcessIdentity, TraceRecord } from '../tracer/records.ts';

/** The identity is that of the process in which it was met first; others may share it. */
export interface Trace extends Readonly<ProcessIdentity> {
  readonly hash: bigint;
  readonly kernelFrames: number;
  /** As in the record. */
  readonly halves: Uint32Array;
  readonly runtimeFile: bigint;
  /** How many came so far. */
  samples: number;
}

export interface TraceCacheOptions {
  maxBytes: number;
  /** Makes BPF send the trace again when it next meets it. */
  forget(hash: bigint): void;
}

/** Object, map entries and the typed array's header, bytes. */
const OVERHEAD_BYTES = 320;
const DRAINS_TO_WAIT = 2;

const traceBytes = (trace: Trace): number => trace.halves.byteLength + OVERHEAD_BYTES;

export class TraceCache {
  readonly #traces: LRUCache<bigint, Trace>;
  readonly #leaving = new Map<bigint, { trace: Trace; drains: number }>();
  readonly stats = { added: 0, repeated: 0, conflicts: 0, evicted: 0 };

  constructor(options: TraceCacheOptions) {
    this.#traces = new LRUCache({
      maxSize: options.maxBytes,
      sizeCalculation: traceBytes,
      dispose: (trace, hash, reason) => {
        if (reason !== 'evict') return;
        this.stats.evicted++;
        options.forget(hash);
        this.#leaving.set(hash, { trace, drains: 0 });
      },
    });
  }

  get size(): number {
    return this.#traces.size + this.#leaving.size;
  }

  /** Takes a trace record; the same trace again (BPF's own cache dropped it) changes nothing. */
  add(record: TraceRecord): void {
    const known = this.get(record.hash);
    if (known && haveSameFrames(known, record)) {
      this.stats.repeated++;
      // it is wanted again: back from the way out
      if (this.#leaving.delete(record.hash)) this.#traces.set(record.hash, known);
      return;
    }
    if (known) this.stats.conflicts++;
    this.stats.added++;
    this.#leaving.delete(record.hash);
    this.#traces.set(record.hash, record);
  }

  /** Makes room: the half that was not seen for longest leaves, a step each, in which BPF is told. */
  *dropHalf(): Generator<void, void> {
    const target = this.#traces.calculatedSize / 2;
    while (this.#traces.calculatedSize > target) {
      this.#traces.pop();
      yield;
    }
  }

  get(hash: bigint): Trace | undefined {
    return this.#traces.get(hash, NO_OPTIONS) ?? this.#leaving.get(hash)?.trace;
  }

  /** A drain has emptied the ring buffer. */
  drained(): void {
    for (const [hash, leaving] of this.#leaving) {
      leaving.drains++;
      if (leaving.drains > DRAINS_TO_WAIT) this.#leaving.delete(hash);
    }
  }
}

const haveSameFrames = (a: Trace, b: TraceRecord): boolean =>
  a.kernelFrames === b.kernelFrames &&
  a.halves.length === b.halves.length &&
  a.halves.every((half, i) => half === b.halves[i]);
