import { type ColumnProfile, columnProfile } from '../../../common/profile/model/frame-columns.ts';
import { countEvents, type Profile, type Sample, valueAt } from '../../../common/profile/model/profile.ts';
import { isCpuType, type ProfileType, typeKey } from '../../../common/profile/model/profile-type.ts';
import { MAX_CPUS } from '../matcher.ts';
import type { AppendResult } from '../store.ts';
import { countOf, MAX_TYPES, storedType, typeProblem } from '../stored-type.ts';
import { type Dictionaries, type FrameBudget, SegmentWriter } from './segment-writer.ts';

/** Events may lie this far in the future: the clocks of two machines are never quite the same. */
const MAX_CLOCK_SKEW_MS = 60_000;
const MAX_FRAMES_PER_PROFILE = 8_000_000;
/** Entries of a profile's tables, over all parts that it has samples of: each part learns anew which of its own they are. */
const MAX_ENTRIES_OF_PARTS = 32_000_000;
/** Largest value that OTLP and pprof can send; sums are exact up to 2 ** 53. */
const MAX_VALUE = 2 ** 63;
/** Each hour costs tables, however few samples it has. */
const MAX_HOURS_PER_PROFILE = 1000;
const HOUR_MS = 3_600_000;
const MAX_PERIOD_NANOS = 3_600_000_000_000n;

export interface AppendLimits {
  maxAgeMs: number;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
}

export interface StoredSample {
  timeMs: number;
  node: number;
  series: number;
  /** -1 if unknown. */
  cpu: number;
  /** Index into its part's links, 0 for none. */
  link: number;
  /** In the unit of its type. */
  weight: number;
}

interface Part extends Dictionaries {
  readonly startMs: number;
}

/** The part of appending that differs between stores: which part takes a time, and where a row goes. */
export interface SampleSink<T extends Part> {
  partFor(timeMs: number, type: ProfileType): T;
  push(part: T, sample: StoredSample): void;
  /** Keys of the types that it has. */
  types(): ReadonlySet<string>;
}

/** Gives every sample of a profile to the sink, or rejects it with a reason. */
export function appendProfile<T extends Part>(
  profile: Profile | ColumnProfile,
  sink: SampleSink<T>,
  limits: AppendLimits,
): AppendResult {
  const result: AppendResult = { stored: 0, rejected: new Map() };
  const type = storedType(profile.type);
  const problem = problemOf(profile.type) ?? crowdProblem(type, sink);
  if (problem === undefined) {
    const columns = 'frames' in profile ? profile : columnProfile(profile);
    new Appender(sink, columns, result, limits).run();
  } else {
    reject(result, problem, countEvents(profile));
  }
  return result;
}

/** Says why all samples of a type are rejected. */
function problemOf(type: ProfileType): string | undefined {
  // CPU time is samples times period: with such a one all sums would be wrong.
  if (isCpuType(storedType(type)) && (type.period < 0n || type.period >= MAX_PERIOD_NANOS))
    return `its period is ${type.period} ns: one of less than an hour is needed, or 0 for none`;
  return typeProblem(type);
}

/** CPU samples are always taken. */
function crowdProblem(type: ProfileType, sink: Pick<SampleSink<never>, 'types'>): string | undefined {
  if (isCpuType(type)) return undefined;
  const known = sink.types();
  if (known.size < MAX_TYPES || known.has(typeKey(type))) return undefined;
  return `the store has samples of ${MAX_TYPES} types, and takes no further one until all of one are dropped for age or room`;
}

/** Appends one profile: remembers per part what of the profile is already there. */
class Appender<T extends Part> {
  readonly #sink: SampleSink<T>;
  readonly #profile: ColumnProfile;
  readonly #type: ProfileType;
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
    this.#type = storedType(profile.type);
    this.#result = result;
    this.#maxAgeMs = options.maxAgeMs;
    this.#oldestMs = options.now() - options.maxAgeMs;
    this.#newestMs = options.now() + MAX_CLOCK_SKEW_MS;
  }

  run(): void {
    // Without timestamps the profile's end stands in: the events are at most that old.
    const end = this.#profile.timeUnixNano + this.#profile.durationNano;
    for (const sample of this.#profile.samples) {
      const { timestamps } = sample;
      if (timestamps.length === 0) this.#addChecked(sample, end, sample.value);
      else
        for (let i = 0; i < timestamps.length; i++)
          this.#addChecked(sample, timestamps[i]!, valueAt(sample, i));
    }
  }

  #addChecked(sample: Sample, timeUnixNano: bigint, value: number): void {
    // A part of it would be a number that nobody sent.
    if (value >= MAX_VALUE) reject(this.#result, 'its value is 2^63 or more', 1);
    else if (value < 0) reject(this.#result, 'its value is below 0', 1);
    else if (value > 0) this.#add(sample, timeUnixNano, value);
  }

  #add(sample: Sample, timeUnixNano: bigint, weight: number): void {
    const timeMs = Number(timeUnixNano / 1_000_000n);
    const count = countOf(this.#type, weight);
    const problem = this.#timeProblem(timeMs);
    if (problem !== undefined) {
      reject(this.#result, problem, count);
      return;
    }
    const writer = this.#writerFor(timeMs);
    if (writer === undefined) {
      const reason = `a profile's tables times its hours have more than ${MAX_ENTRIES_OF_PARTS} entries`;
      reject(this.#result, reason, count);
      return;
    }
    const node = writer.node(sample);
    if (node === undefined) {
      const reason = `a profile's stacks add up to more than ${MAX_FRAMES_PER_PROFILE} frames`;
      reject(this.#result, reason, count);
      return;
    }
    const series = writer.series(sample);
    const link = writer.link(sample);
    // A sender's number may not fit into the columns.
    const cpu = sample.cpu >= 0 && sample.cpu < MAX_CPUS ? sample.cpu : -1;
    this.#sink.push(writer.segment, { timeMs, node, series, cpu, weight, link });
    this.#result.stored += count;
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
    const segment = this.#sink.partFor(timeMs, this.#type);
    let writer = this.#writers.get(segment.startMs);
    if (writer?.segment !== segment) {
      const { frames, stacks } = this.#profile;
      this.#entriesLeft -= frames.locationCount + frames.functionCount + stacks.length;
      if (this.#entriesLeft < 0) return undefined;
      writer = new SegmentWriter(segment, this.#profile, this.#profile.type, this.#budget);
      this.#writers.set(segment.startMs, writer);
    }
    return writer;
  }
}

function reject(result: AppendResult, reason: string, samples: number): void {
  if (samples > 0) result.rejected.set(reason, (result.rejected.get(reason) ?? 0) + samples);
}
