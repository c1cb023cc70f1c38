/**
 * Counts samples under (source, trace, execution of a process, thread, CPU) until the next interval is taken. This is
 * what runs for each sample: no object is made for it.
 */
import type { TraceId } from '../../common/base/brand.ts';
import { joinAttributes } from '../../common/profile/model/attributes.ts';
import { EF_TRACE_OF_PROCESS, PROFILE_TYPES, SAMPLE, TRACE } from '../records/records.gen.ts';
import { Interval } from './interval.ts';
import { type KeysOf, LabelReader, NO_KEYS } from './labels.ts';
import type { TraceStore } from './trace-store.ts';
import { attributesOfWait, isWait } from './waits.ts';

const SOURCES: number = PROFILE_TYPES.length;

export interface TraceHandlerOptions {
  /** Of one interval. */
  maxSamples?: number;
  /** Sources that samples may come from. */
  origins?: number;
  keysOf?: KeysOf;
}

export class TraceHandler {
  readonly #store: TraceStore;
  #interval: Interval;
  readonly #maxSamples: number;
  readonly #origins: number;
  readonly #labels: LabelReader;
  #beginNs = 0n;
  readonly stats = { samples: 0, lostTraceMissing: 0, lostIntervalFull: 0, malformed: 0, tooEarly: 0 };

  constructor(
    store: TraceStore,
    { maxSamples = 2_000_000, origins = SOURCES, keysOf = () => NO_KEYS }: TraceHandlerOptions = {},
  ) {
    this.#store = store;
    this.#maxSamples = maxSamples;
    this.#origins = origins;
    this.#labels = new LabelReader(keysOf);
    this.#interval = this.#newInterval();
  }

  /** Returns the trace if what it says has to be read while its process lives. */
  onTrace(buffer: Buffer, at: number, size: number): TraceId | undefined {
    const id = this.#store.add(buffer, at, size);
    return (buffer.readUInt32LE(at + TRACE.flags) & EF_TRACE_OF_PROCESS) !== 0 ? id : undefined;
  }

  onSample(buffer: Buffer, at: number, size: number): void {
    if (size < SAMPLE.bytes || buffer.readUInt16LE(at + SAMPLE.origin) >= this.#origins) {
      this.stats.malformed++;
      return;
    }
    this.stats.samples++;
    if (this.#beginNs > 0n && buffer.readBigUInt64LE(at + SAMPLE.ktimeNs) < this.#beginNs) {
      this.stats.tooEarly++;
      return;
    }
    const hash = at + SAMPLE.traceHash;
    const trace = this.#store.sampled(buffer.readUInt32LE(hash), buffer.readUInt32LE(hash + 4));
    if (trace === undefined) {
      this.stats.lostTraceMissing++;
      return;
    }
    if (this.#interval.samples >= this.#maxSamples) {
      this.stats.lostIntervalFull++;
      return;
    }
    const { attributes, span } = this.#labels.labelsOf(buffer, at, size);
    const isOfWait = isWait(buffer, at, size);
    this.#interval.add(trace, buffer, at, isOfWait ? waitOf(buffer, at, attributes) : attributes, span);
  }

  /** What was sampled before that time of CLOCK_MONOTONIC is left out, however late it comes. */
  begin(beginNs: bigint): void {
    this.#beginNs = beginNs;
    this.release(this.takeInterval());
  }

  /** Samples of the interval that was not taken yet. */
  get waiting(): number {
    return this.#interval.samples;
  }

  drained(): void {
    this.#store.drained();
  }

  /** Returns what was counted since the last call, and starts anew. Its traces can be read until it is released. */
  takeInterval(): Interval {
    const interval = this.#interval;
    this.#interval = this.#newInterval();
    return interval;
  }

  /** In the order in which they were taken. */
  release(interval: Interval): void {
    this.#store.release(interval.number);
  }

  #newInterval(): Interval {
    return new Interval(this.#store.beginInterval(), (older, newer) => this.#store.hasMoved(older, newer));
  }
}

/** What is told of a wait, and the labels of its thread. */
function waitOf(buffer: Buffer, at: number, labels: string): string {
  const wait = attributesOfWait(buffer, at);
  return labels === '' ? wait : joinAttributes(wait, labels);
}
