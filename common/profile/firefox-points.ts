/** When the samples of a thread were taken, as the Firefox Profiler wants it: a row a sample, in order of time. */
import type { Profile, Sample } from './profile.ts';

/** One event, or all of a sample entry that kept no times. */
export interface Point {
  /** Since the start of the profile. */
  timeMs: number;
  sample: Sample;
  weight: number;
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
  const total = samples.reduce((sum, { count }) => sum + count, 0);
  const isEach = total <= MAX_UNTIMED_ROWS;
  const periodMs = periodMsOf(profile);
  const rows: Point[] = [];
  let events = 0;
  for (const sample of samples) {
    const weight = isEach ? 1 : sample.count;
    for (let done = 0; done < sample.count; done += weight) {
      rows.push({ timeMs: events * periodMs, sample, weight });
      events += weight;
    }
  }
  return { rows, isTimed };
}

function timedRows(sample: Sample, start: bigint): Point[] {
  if (sample.timestamps.length === 0) return [{ timeMs: 0, sample, weight: sample.count }];
  return sample.timestamps.map((time) => ({ timeMs: Number(time - start) / 1e6, sample, weight: 1 }));
}

/** Between two samples; that program takes no 0. */
export const periodMsOf = (profile: Profile): number => Number(profile.period) / 1e6 || 1;

/**
 * CPU time since the row before, in nanoseconds: what the graph of activity is drawn from, and what busy threads are
 * told by. Undefined where samples are of something else than CPU time.
 */
export function cpuDeltas(profile: Profile, rows: readonly Point[]): number[] | undefined {
  const { periodType, period } = profile;
  if (periodType.type !== 'cpu' || periodType.unit !== 'nanoseconds' || period <= 0n) return undefined;
  return rows.map(({ weight }) => weight * Number(period));
}
