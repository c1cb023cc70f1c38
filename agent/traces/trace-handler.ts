/**
 * Counts samples under (trace, execution of a process, thread, CPU) until the next interval is taken. This is
 * what runs for each sample: no object is made for it.
 */
import { SAMPLE } from '../tracer/records.gen.ts';
import { readTraceRecord, readU64 } from '../tracer/records.ts';
import { Interval } from './interval.ts';
import type { Trace, TraceCache } from './trace-cache.ts';

export class TraceHandler {
  readonly #cache: TraceCache;
  #interval = new Interval();
  readonly #maxSamples: number;
  readonly stats = { samples: 0, lostTraceMissing: 0, lostIntervalFull: 0, malformed: 0 };

  /** `maxSamples` bounds what one interval may hold. */
  constructor(cache: TraceCache, maxSamples = 2_000_000) {
    this.#cache = cache;
    this.#maxSamples = maxSamples;
  }

  /** Returns the trace if what it says has to be read while its process lives. */
  onTrace(buffer: Buffer, at: number, size: number): Trace | undefined {
    const record = readTraceRecord(buffer, at, size);
    this.#cache.add(record);
    return record.isOfProcess ? this.#cache.get(record.hash) : undefined;
  }

  onSample(buffer: Buffer, at: number, size: number): void {
    if (size < SAMPLE.bytes) {
      this.stats.malformed++;
      return;
    }
    this.stats.samples++;
    const trace = this.#cache.get(readU64(buffer, at + SAMPLE.traceHash));
    if (!trace) {
      this.stats.lostTraceMissing++;
      return;
    }
    if (this.#interval.samples >= this.#maxSamples) {
      this.stats.lostIntervalFull++;
      return;
    }
    this.#interval.add(trace, buffer, at);
    trace.samples++;
  }

  /** Samples of the interval that was not taken yet. */
  get waiting(): number {
    return this.#interval.samples;
  }

  drained(): void {
    this.#cache.drained();
  }

  /** What was counted since the last call; counting starts anew. */
  takeInterval(): Interval {
    const interval = this.#interval;
    this.#interval = new Interval();
    return interval;
  }
}
