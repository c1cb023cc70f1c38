import type { ColumnProfile } from '../../common/profile/frame-columns.ts';
import type { Profile } from '../../common/profile/profile.ts';
import { appendProfile, type SampleSink } from './append.ts';
import { SEGMENT_MS, Segment } from './segment.ts';
import type { AppendResult, SamplePart, Store, StoreStats, TimeRange } from './store.ts';

export interface MemoryStoreOptions {
  maxBytes: number;
  maxAgeMs: number;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
}

/** Samples in memory, bounded in bytes and in age: the oldest segment goes first, and is counted. */
export class MemoryStore implements Store {
  readonly busy = undefined;
  readonly #options: MemoryStoreOptions;
  readonly #maxSegmentBytes: number;
  /** In order of their start; several may share a minute. */
  #segments: Segment[] = [];
  /** Start of a minute → the segment that takes its samples. */
  readonly #open = new Map<number, Segment>();
  readonly #sink: SampleSink<Segment> = {
    partFor: (timeMs) => this.#segmentFor(timeMs),
    push: (segment, { timeMs, node, series, cpu, weight }) => {
      segment.columns.push(timeMs - segment.startMs, node, series, cpu, weight);
      if (this.#newestMs === undefined || timeMs > this.#newestMs) this.#newestMs = timeMs;
    },
  };
  #newestMs: number | undefined;
  #droppedForMemory = 0;
  #droppedForAge = 0;

  constructor(options: MemoryStoreOptions) {
    this.#options = options;
    this.#maxSegmentBytes = options.maxBytes / 16;
  }

  append(profile: Profile | ColumnProfile): AppendResult {
    const result = appendProfile(profile, this.#sink, this.#options);
    this.#evict();
    return result;
  }

  async parts({ fromMs, toMs }: TimeRange): Promise<SamplePart[]> {
    this.#evict();
    return this.#segments.filter(({ startMs, endMs }) => startMs < toMs && endMs > fromMs);
  }

  noteRequest(): void {}

  async commit(): Promise<void> {}

  recentRequests(): readonly string[] {
    return [];
  }

  async close(): Promise<void> {}

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
  #segmentFor(timeMs: number): Segment {
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

  #bytes(): number {
    return this.#segments.reduce((sum, segment) => sum + segment.bytes, 0);
  }

  /** Minutes that have passed rarely get more samples. */
  #trimClosed(): void {
    const now = this.#options.now();
    for (const segment of this.#segments) {
      if (segment.endMs + SEGMENT_MS >= now) continue;
      segment.columns.trim();
      segment.frames.forgetTexts();
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
