import type { ColumnProfile } from '../../../common/profile/model/frame-columns.ts';
import type { Profile } from '../../../common/profile/model/profile.ts';
import { type ProfileType, typeKey } from '../../../common/profile/model/profile-type.ts';
import type { AppendResult, SamplePart, Store, StoreStats, TimeRange, TypedRange } from '../store.ts';
import { CPU_KEY } from '../stored-type.ts';
import { appendProfile, type SampleSink } from './append.ts';
import { SEGMENT_MS, Segment } from './segment.ts';

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
  /** In order of their start; several may share a minute, as those of several types do. */
  #segments: Segment[] = [];
  /** By type and start of a minute: the segment that takes its samples. */
  readonly #open = new Map<string, Segment>();
  readonly #sink: SampleSink<Segment> = {
    partFor: (timeMs, type) => this.#segmentFor(timeMs, type),
    push: (segment, sample) => {
      segment.push(sample);
      if (this.#newestMs === undefined || sample.timeMs > this.#newestMs) this.#newestMs = sample.timeMs;
    },
    types: () => new Set(this.#segments.map(({ type }) => typeKey(type))),
  };
  #newestMs: number | undefined;
  #droppedForMemory = 0;
  #droppedForAge = 0;

  constructor(options: MemoryStoreOptions) {
    this.#options = options;
    this.#maxSegmentBytes = options.maxBytes / 16;
  }

  hold(): () => void {
    return () => {};
  }

  append(profile: Profile | ColumnProfile): AppendResult {
    const result = appendProfile(profile, this.#sink, this.#options);
    this.#evict();
    return result;
  }

  async parts({ fromMs, toMs, type = CPU_KEY }: TypedRange): Promise<SamplePart[]> {
    this.#evict();
    return this.#segments.filter(
      (segment) => segment.startMs < toMs && segment.endMs > fromMs && typeKey(segment.type) === type,
    );
  }

  async types({ fromMs, toMs }: TimeRange): Promise<ProfileType[]> {
    this.#evict();
    const found = this.#segments.filter(({ startMs, endMs }) => startMs < toMs && endMs > fromMs);
    return [...new Map(found.map(({ type }) => [typeKey(type), type])).values()];
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
      samples: this.#segments.reduce((sum, segment) => sum + segment.samples, 0),
      bytes: this.#bytes(),
      maxBytes: this.#options.maxBytes,
      maxAgeMs: this.#options.maxAgeMs,
      oldestMs: this.#segments[0]?.startMs,
      newestMs: this.#segments.length === 0 ? undefined : this.#newestMs,
      droppedForMemory: this.#droppedForMemory,
      droppedForAge: this.#droppedForAge,
    };
  }

  /** The segment that takes samples of `timeMs`; a full one is closed and a new one begun. */
  #segmentFor(timeMs: number, type: ProfileType): Segment {
    const startMs = Math.floor(timeMs / SEGMENT_MS) * SEGMENT_MS;
    const key = openKey(type, startMs);
    let segment = this.#open.get(key);
    if (segment !== undefined && segment.bytes < this.#maxSegmentBytes) return segment;
    segment?.columns.trim();
    // Before the new one is there: it may be the oldest, and must not go while it is being filled.
    this.#trimClosed();
    this.#evict();
    segment = new Segment(type, startMs);
    this.#open.set(key, segment);
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
      segment.frames.forgetSender();
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
    const key = openKey(segment.type, segment.startMs);
    if (this.#open.get(key) === segment) this.#open.delete(key);
    return segment.samples;
  }
}

const openKey = (type: ProfileType, startMs: number): string => `${startMs} ${typeKey(type)}`;
