import { type ColumnProfile, columnProfile } from '../../common/profile/frame-columns.ts';
import type { Profile, Sample } from '../../common/profile/profile.ts';
import { type Dictionaries, type FrameBudget, SegmentWriter } from './segment-writer.ts';
import type { AppendResult } from './store.ts';

/** Events may lie this far in the future: the clocks of two machines are never quite the same. */
const MAX_CLOCK_SKEW_MS = 60_000;
const MAX_FRAMES_PER_PROFILE = 8_000_000;
/** Entries of a profile's tables, over all parts that it has samples of: each part learns anew which of its own they are. */
const MAX_ENTRIES_OF_PARTS = 32_000_000;
const MAX_WEIGHT = 2 ** 32;
/** Each hour costs tables, however few samples it has. */
const MAX_HOURS_PER_PROFILE = 1000;
const HOUR_MS = 3_600_000;
const MAX_PERIOD_NANOS = 3_600_000_000_000n;

export interface AppendLimits {
  maxAgeMs: number;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
}

interface StoredSample {
  timeMs: number;
  node: number;
  series: number;
  cpu: number;
  /** Events. */
  weight: number;
}

interface Part extends Dictionaries {
  readonly startMs: number;
}

/** What differs between stores: which part takes a time, and where a row goes. */
export interface SampleSink<T extends Part> {
  partFor(timeMs: number): T;
  push(part: T, sample: StoredSample): void;
}

/** Gives every event of a profile to the sink, or rejects it with a reason. */
export function appendProfile<T extends Part>(
  profile: Profile | ColumnProfile,
  sink: SampleSink<T>,
  limits: AppendLimits,
): AppendResult {
  const result: AppendResult = { stored: 0, rejected: new Map() };
  const problem = problemOf(profile);
  if (problem === undefined) {
    const columns = 'frames' in profile ? profile : columnProfile(profile);
    new Appender(sink, columns, result, limits).run();
  } else {
    const events = profile.samples.reduce((sum, sample) => sum + sample.count, 0);
    reject(result, problem, events);
  }
  return result;
}

/** What is wrong with all samples of a profile. */
function problemOf({ sampleType: { type, unit }, period }: Profile | ColumnProfile): string | undefined {
  if (type !== 'samples' || unit !== 'count')
    return `its sample type is ${type}/${unit}; only samples/count is shown`;
  // CPU time is samples times period: with such a one all sums would be wrong.
  if (period < 0n || period >= MAX_PERIOD_NANOS)
    return `its period is ${period} ns: one of less than an hour is needed, or 0 for none`;
  return undefined;
}

/** Appends one profile: remembers per part what of the profile is already there. */
class Appender<T extends Part> {
  readonly #sink: SampleSink<T>;
  readonly #profile: ColumnProfile;
  readonly #result: AppendResult;
  readonly #budget: FrameBudget = { frames: MAX_FRAMES_PER_PROFILE };
  readonly #writers = new Map<number, SegmentWriter<T>>();
  readonly #oldestMs: number;
  readonly #newestMs: number;
  readonly #maxAgeMs: number;
  readonly #hours = new Set<number>();
  #entriesLeft = MAX_ENTRIES_OF_PARTS;

  constructor(sink: SampleSink<T>, profile: ColumnProfile, result: AppendResult, options: AppendLimits) {
    this.#sink = sink;
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
        if (sample.count <= MAX_WEIGHT) this.#add(sample, end, sample.count);
        // A part of it would be a number that nobody sent.
        else reject(this.#result, `more than ${MAX_WEIGHT} events in one sample`, sample.count);
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
    if (writer === undefined) {
      const reason = `a profile's tables times its hours have more than ${MAX_ENTRIES_OF_PARTS} entries`;
      reject(this.#result, reason, weight);
      return;
    }
    const node = writer.node(sample);
    if (node === undefined) {
      const reason = `a profile's stacks add up to more than ${MAX_FRAMES_PER_PROFILE} frames`;
      reject(this.#result, reason, weight);
      return;
    }
    const series = writer.series(sample);
    this.#sink.push(writer.segment, { timeMs, node, series, cpu: sample.cpu, weight });
    this.#result.stored += weight;
  }

  #timeProblem(timeMs: number): string | undefined {
    if (timeMs <= this.#oldestMs) {
      return `its time is more than ${Math.round(this.#maxAgeMs / 60_000)} minutes ago, older than what is kept`;
    }
    if (timeMs >= this.#newestMs) {
      return `its time is more than ${MAX_CLOCK_SKEW_MS / 1000} s in the future: compare the two machines' clocks`;
    }
    const hour = Math.floor(timeMs / HOUR_MS);
    if (this.#hours.size >= MAX_HOURS_PER_PROFILE && !this.#hours.has(hour))
      return `its profile has samples of more than ${MAX_HOURS_PER_PROFILE} different hours`;
    this.#hours.add(hour);
    return undefined;
  }

  /** Undefined once the profile has used up its entries. */
  #writerFor(timeMs: number): SegmentWriter<T> | undefined {
    const segment = this.#sink.partFor(timeMs);
    let writer = this.#writers.get(segment.startMs);
    if (writer?.segment !== segment) {
      const { frames, stacks } = this.#profile;
      this.#entriesLeft -= frames.locationCount + frames.functionCount + stacks.length;
      if (this.#entriesLeft < 0) return undefined;
      writer = new SegmentWriter(segment, this.#profile, this.#budget);
      this.#writers.set(segment.startMs, writer);
    }
    return writer;
  }
}

function reject(result: AppendResult, reason: string, events: number): void {
  if (events > 0) result.rejected.set(reason, (result.rejected.get(reason) ?? 0) + events);
}
