/** What the timeline draws: groups stacked on each other, in CPUs that were busy. */
import type { TimelineAnswer } from '../api/types.ts';

/** Areas that can be told apart; the other groups are one. */
export const MAX_AREAS = 8;

export interface Area {
  /** Value of the label; undefined: all other groups. */
  value: string | undefined;
  /** Of all events, in [0, 1]. */
  share: number;
  /** Busy CPUs in each step. */
  cpus: number[];
}

export interface TimelineData {
  fromMs: number;
  toMs: number;
  stepMs: number;
  samples: number;
  /** The largest first, the others last. */
  areas: Area[];
  /** Over the time since the first event. */
  meanCpus: number;
}

export function stackTimeline(answer: TimelineAnswer): TimelineData {
  const { fromMs, toMs, steps, samples, cpuNanos } = answer;
  const stepMs = (toMs - fromMs) / steps;
  const nanosPerSample = samples === 0 ? 0 : cpuNanos / samples;
  const toArea = (value: string | undefined, count: number, counts: readonly number[]): Area => ({
    value,
    share: samples === 0 ? 0 : count / samples,
    cpus: counts.map((each) => (each * nanosPerSample) / (stepMs * 1e6)),
  });
  const areas = answer.groups
    .slice(0, MAX_AREAS)
    .map((group) => toArea(group.value, group.samples, group.counts));
  const others = answer.groups.slice(MAX_AREAS).map(({ counts }) => counts);
  const rest = answer.other.map((count, step) => others.reduce((sum, counts) => sum + counts[step]!, count));
  const restCount = rest.reduce((a, b) => a + b, 0);
  if (restCount > 0) areas.push(toArea(undefined, restCount, rest));
  const firstStep = Math.max(
    0,
    Array.from({ length: steps }, (_, step) => step).findIndex((step) =>
      areas.some(({ cpus }) => cpus[step]! > 0),
    ),
  );
  // An agent that has just started says nothing of the time before.
  const meanCpus = cpuNanos / 1e6 / ((steps - firstStep) * stepMs);
  return { fromMs, toMs, stepMs, samples, areas, meanCpus };
}

/**
 * The columns that uPlot draws, the tallest sum first, so that each area covers the lower part of the one before;
 * padded with zeros to `MAX_AREAS + 1`. The last step ends the picture.
 */
export function plotColumns({ fromMs, stepMs, areas }: TimelineData): [number[], ...number[][]] {
  const steps = areas[0]?.cpus.length ?? 0;
  const times = Array.from({ length: steps + 1 }, (_, step) => fromMs + step * stepMs);
  const sums: number[][] = [];
  let below = new Array<number>(steps + 1).fill(0);
  for (let i = areas.length - 1; i >= 0; i--) {
    const { cpus } = areas[i]!;
    below = below.map((sum, step) => sum + cpus[Math.min(step, steps - 1)]!);
    sums.unshift(below);
  }
  while (sums.length <= MAX_AREAS) sums.push(new Array<number>(steps + 1).fill(0));
  return [times, ...sums];
}

/** Places on the palette: what is shown keeps its own, what is new takes the first free one. */
export function assignColours(
  known: ReadonlyMap<string, number>,
  shown: readonly string[],
): Map<string, number> {
  const places = new Map<string, number>();
  for (const value of shown) {
    const place = known.get(value);
    if (place !== undefined) places.set(value, place);
  }
  const taken = new Set(places.values());
  let free = 0;
  for (const value of shown) {
    if (places.has(value)) continue;
    while (taken.has(free)) free++;
    taken.add(free);
    places.set(value, free);
  }
  return places;
}
