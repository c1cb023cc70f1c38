/** When the samples of a thread were taken, as the Firefox Profiler wants it: a row a sample, in order of time. */
import { type Profile, type Sample, valueAt } from '../model/profile.ts';
import { countsSamples, isCpuType, measureOf, valueTypeName } from '../model/profile-type.ts';

/** One event, or all of a sample entry that kept no times. */
export interface Point {
  /** Since the start of the profile. */
  timeMs: number;
  sample: Sample;
  /** A value of the sample's, or all of them. */
  value: number;
}

export interface Points {
  rows: Point[];
  /** False: nobody kept them, so that the samples stand one behind the other, each as long as it took. */
  isTimed: boolean;
}

/** Above it, one row stands for all events of a stack, which costs that program the evenness of its timeline. */
const MAX_UNTIMED_ROWS = 1 << 16;

/** Of folded stacks and pprof there is a timeline too: at one instant that program would draw none. */
export function pointsOf(profile: Profile, samples: readonly Sample[]): Points {
  const isTimed = samples.some(({ timestamps }) => timestamps.length > 0);
  if (isTimed) {
    const rows = samples.flatMap((sample) => timedRows(sample, profile.timeUnixNano));
    return { rows: rows.sort((a, b) => a.timeMs - b.timeMs), isTimed };
  }
  const total = samples.reduce((sum, { value }) => sum + value, 0);
  const isEach = countsSamples(profile.type) && total <= MAX_UNTIMED_ROWS;
  const msPerValue = measureOf(profile.type).unit === 'nanoseconds' ? measureOf(profile.type).scale / 1e6 : 1;
  const rows: Point[] = [];
  let before = 0;
  for (const sample of samples) {
    const value = isEach ? 1 : sample.value;
    for (let done = 0; done < sample.value; done += value) {
      rows.push({ timeMs: before * msPerValue, sample, value });
      before += value;
    }
  }
  return { rows, isTimed };
}

function timedRows(sample: Sample, start: bigint): Point[] {
  if (sample.timestamps.length === 0) return [{ timeMs: 0, sample, value: sample.value }];
  return sample.timestamps.map((time, event) => ({
    timeMs: Number(time - start) / 1e6,
    sample,
    value: valueAt(sample, event),
  }));
}

/** Between two samples; that program takes no 0. */
export function periodMsOf({ type }: Profile): number {
  const { unit, scale } = measureOf(type);
  return countsSamples(type) && unit === 'nanoseconds' ? scale / 1e6 : 1;
}

/**
 * CPU time since the row before, in nanoseconds: what the graph of activity is drawn from, and what busy threads are
 * told by. Undefined where samples are of something else than CPU time.
 */
export function cpuDeltas(profile: Profile, rows: readonly Point[]): number[] | undefined {
  const { type } = profile;
  const isCpuTime = isCpuType(type) || valueTypeName(type.sampleType) === 'cpu/nanoseconds';
  const { unit, scale } = measureOf(type);
  return isCpuTime && unit === 'nanoseconds' ? rows.map(({ value }) => value * scale) : undefined;
}

/** What that program knows besides counts: times in milliseconds, and bytes. */
export function weightsOf({ type }: Profile): { weightType: string; scale: number } {
  if (type.sampleType.unit === 'nanoseconds') return { weightType: 'tracing-ms', scale: 1e-6 };
  return { weightType: type.sampleType.unit === 'bytes' ? 'bytes' : 'samples', scale: 1 };
}
