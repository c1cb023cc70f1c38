import type { Profile, Sample } from '../../common/profile/profile.ts';
import { SEGMENT_MS, Segment } from './segment.ts';
import { readProcesses, readWindow } from './segment-reader.ts';
import { type FrameBudget, SegmentWriter } from './segment-writer.ts';
import type {
  AppendResult,
  ProcessCount,
  SampleFilter,
  Store,
  StoreStats,
  TimeRange,
  Window,
} from './store.ts';

/** Events may lie this far in the future: the clocks of two machines are never quite the same. */
export const MAX_CLOCK_SKEW_MS = 60_000;
const MAX_FRAMES_PER_PROFILE = 8_000_000;
const MAX_WEIGHT = 2 ** 32;

export interface MemoryStoreOptions {
  maxBytes: number;
  maxAgeMs: number;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
}

/** Samples in memory, bounded in bytes and in age: the oldest segment goes first, and is counted. */
export class MemoryStore implements Store {
  readonly #options: MemoryStoreOptions;
  readonly #maxSegmentBytes: number;
  /** In order of their start; several may share a minute. */
  #segments: Segment[] = [];
  /** Start of a minute → the segment that takes its samples. */
  readonly #open = new Map<number, Segment>();
  #newestMs: number | undefined;
  #droppedForMemory = 0;
  #droppedForAge = 0;

  constructor(options: MemoryStoreOptions) {
    this.#options = options;
    this.#maxSegmentBytes = options.maxBytes / 16;
  }

  append(profile: Profile): AppendResult {
    const result: AppendResult = { stored: 0, rejected: new Map() };
    const { type, unit } = profile.sampleType;
    if (type !== 'samples' || unit !== 'count') {
      const events = profile.samples.reduce((sum, sample) => sum + sample.count, 0);
      reject(result, `its sample type is ${type}/${unit}; only samples/count is shown`, events);
      return result;
    }
    new Appender(this, profile, result, this.#options).run();
    this.#evict();
    return result;
  }

  async readWindow(filter: SampleFilter, steps: number): Promise<Window> {
    this.#evict();
    return readWindow(this.#segments, filter, steps);
  }

  async readProcesses(range: TimeRange): Promise<ProcessCount[]> {
    this.#evict();
    return readProcesses(this.#segments, range);
  }

  stats(): StoreStats {
    this.#evict();
    return {
      samples: this.#segments.reduce((sum, segment) => sum + segment.columns.events, 0),
      bytes: this.#bytes(),
      maxBytes: this.#options.maxBytes,
      maxAgeMs: this.#options.maxAgeMs,
      oldestMs: this.#segments[0]?.startMs,
      newestMs: this.#segments.length === 0 ? undefined : this.#newestMs,
      droppedForMemory: this.#droppedForMemory,
      droppedForAge: this.#droppedForAge,
    };
  }

  /** The segment that takes events of `timeMs`; a full one is closed and a new one begun. */
  segmentFor(timeMs: number): Segment {
    const startMs = Math.floor(timeMs / SEGMENT_MS) * SEGMENT_MS;
    let segment = this.#open.get(startMs);
    if (segment !== undefined && segment.bytes < this.#maxSegmentBytes) return segment;
    segment?.columns.trim();
    // Before the new one is there: it may be the oldest, and must not go while it is being filled.
    this.#trimClosed();
    this.#evict();
    segment = new Segment(startMs);
    this.#open.set(startMs, segment);
    const after = this.#segments.findLastIndex((other) => other.startMs <= startMs);
    this.#segments.splice(after + 1, 0, segment);
    return segment;
  }

  noteTime(timeMs: number): void {
    if (this.#newestMs === undefined || timeMs > this.#newestMs) this.#newestMs = timeMs;
  }

  #bytes(): number {
    return this.#segments.reduce((sum, segment) => sum + segment.bytes, 0);
  }

  /** Minutes that have passed rarely get more samples. */
  #trimClosed(): void {
    const now = this.#options.now();
    for (const segment of this.#segments) {
      if (segment.endMs + SEGMENT_MS < now) segment.columns.trim();
    }
  }

  #evict(): void {
    const oldestMs = this.#options.now() - this.#options.maxAgeMs;
    while (this.#segments.length > 0 && this.#segments[0]!.endMs <= oldestMs) {
      this.#droppedForAge += this.#dropOldest();
    }
    // A segment may outgrow its share by one doubling of its arrays before it is closed.
    const budget = this.#options.maxBytes - 2 * this.#maxSegmentBytes;
    for (let bytes = this.#bytes(); bytes > budget && this.#segments.length > 1; bytes = this.#bytes()) {
      this.#droppedForMemory += this.#dropOldest();
    }
  }

  #dropOldest(): number {
    const segment = this.#segments.shift()!;
    if (this.#open.get(segment.startMs) === segment) this.#open.delete(segment.startMs);
    return segment.columns.events;
  }
}

/** Appends one profile: remembers per segment what of the profile is already there. */
class Appender {
  readonly #store: MemoryStore;
  readonly #profile: Profile;
  readonly #result: AppendResult;
  readonly #budget: FrameBudget = { frames: MAX_FRAMES_PER_PROFILE };
  readonly #writers = new Map<number, SegmentWriter>();
  readonly #oldestMs: number;
  readonly #newestMs: number;
  readonly #maxAgeMs: number;

  constructor(store: MemoryStore, profile: Profile, result: AppendResult, options: MemoryStoreOptions) {
    this.#store = store;
    this.#profile = profile;
    this.#result = result;
    this.#maxAgeMs = options.maxAgeMs;
    this.#oldestMs = options.now() - options.maxAgeMs;
    this.#newestMs = options.now() + MAX_CLOCK_SKEW_MS;
  }

  run(): void {
    for (const sample of this.#profile.samples) {
      // Without timestamps the profile's end stands in: the events are at most that old.
      if (sample.timestamps.length === 0) {
        const end = this.#profile.timeUnixNano + this.#profile.durationNano;
        this.#add(sample, end, Math.min(sample.count, MAX_WEIGHT));
      }
      for (const time of sample.timestamps) this.#add(sample, time, 1);
    }
  }

  #add(sample: Sample, timeUnixNano: bigint, weight: number): void {
    const timeMs = Number(timeUnixNano / 1_000_000n);
    if (!(weight >= 1)) return;
    const problem = this.#timeProblem(timeMs);
    if (problem !== undefined) {
      reject(this.#result, problem, weight);
      return;
    }
    const writer = this.#writerFor(timeMs);
    const node = writer.node(sample);
    if (node === undefined) {
      const reason = `a profile's stacks add up to more than ${MAX_FRAMES_PER_PROFILE} frames`;
      reject(this.#result, reason, weight);
      return;
    }
    const offset = timeMs - writer.segment.startMs;
    const process = writer.process(sample.process);
    writer.segment.columns.push(offset, node, process, sample.tid, sample.cpu, weight);
    this.#store.noteTime(timeMs);
    this.#result.stored += weight;
  }

  #timeProblem(timeMs: number): string | undefined {
    if (timeMs <= this.#oldestMs) {
      return `its time is more than ${Math.round(this.#maxAgeMs / 60_000)} minutes ago, older than what is kept`;
    }
    if (timeMs >= this.#newestMs) {
      return `its time is more than ${MAX_CLOCK_SKEW_MS / 1000} s in the future: compare the two machines' clocks`;
    }
    return undefined;
  }

  #writerFor(timeMs: number): SegmentWriter {
    const segment = this.#store.segmentFor(timeMs);
    let writer = this.#writers.get(segment.startMs);
    if (writer?.segment !== segment) {
      writer = new SegmentWriter(segment, this.#profile, this.#budget);
      this.#writers.set(segment.startMs, writer);
    }
    return writer;
  }
}

function reject(result: AppendResult, reason: string, events: number): void {
  if (events > 0) result.rejected.set(reason, (result.rejected.get(reason) ?? 0) + events);
}
