/** What the timeline draws: groups stacked on each other, in CPUs that were busy or what the type counts. */

import { isCpu, type TimeScale, timeScale } from '../../../common/flame/shown-type.ts';
import type { TypeAnswer } from '../../../common/flame/tree-answer.ts';
import type { TimelineAnswer } from '../../api/types.ts';

/** Areas that can be told apart; the other groups are one. */
export const MAX_AREAS = 8;

export interface Area {
  /** Value of the label; undefined: all other groups. */
  value: string | undefined;
  /** Of all events, in [0, 1]. */
  share: number;
  /** Of each step, in busy CPUs or as the scale says. */
  heights: number[];
}

export interface TimelineData {
  fromMs: number;
  toMs: number;
  stepMs: number;
  type: TypeAnswer;
  scale: TimeScale;
  samples: number;
  /** The largest first, the others last. */
  areas: Area[];
  /** Of the height over the time since the first sample. */
  mean: number;
}

export function stackTimeline(answer: TimelineAnswer): TimelineData {
  const { fromMs, toMs, steps, type, samples } = answer;
  const stepMs = (toMs - fromMs) / steps;
  // as if each sample were a nanosecond: factorsOf says how many it is
  const scale = timeScale(type, stepMs, 1);
  const factors = factorsOf(answer, scale.factor);
  const toArea = (value: string | undefined, count: number, counts: readonly number[]): Area => ({
    value,
    share: samples === 0 ? 0 : count / samples,
    heights: counts.map((each, step) => each * factors[step]!),
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
      areas.some(({ heights }) => heights[step]! > 0),
    ),
  );
  // An agent that has just started says nothing of the time before.
  const sum = areas.reduce((all, { heights }) => heights.reduce((a, b) => a + b, all), 0);
  return { fromMs, toMs, stepMs, type, scale, samples, areas, mean: sum / (steps - firstStep) };
}

/** Height of an event in each step: in each, CPU samples may have been taken at another rate. */
function factorsOf({ type, steps, stepNanos, groups, other }: TimelineAnswer, factor: number): number[] {
  return Array.from({ length: steps }, (_, step) => {
    if (!isCpu(type)) return factor;
    const count = groups.reduce((sum, { counts }) => sum + counts[step]!, other[step]!);
    return count === 0 ? 0 : (factor * stepNanos[step]!) / count;
  });
}

/**
 * The columns that uPlot draws, the tallest sum first, so that each area covers the lower part of the one before;
 * padded with zeros to `MAX_AREAS + 1`. The last step ends the picture.
 */
export function plotColumns({ fromMs, stepMs, areas }: TimelineData): [number[], ...number[][]] {
  const steps = areas[0]?.heights.length ?? 0;
  const times = Array.from({ length: steps + 1 }, (_, step) => fromMs + step * stepMs);
  const sums: number[][] = [];
  let below = new Array<number>(steps + 1).fill(0);
  for (let i = areas.length - 1; i >= 0; i--) {
    const { heights } = areas[i]!;
    below = below.map((sum, step) => sum + heights[Math.min(step, steps - 1)]!);
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
