/** What lanes of threads show at a place, without a DOM. */
import type { LanesAnswer } from '../../api/types.ts';
import type { LaneThread } from '../../query/lanes.ts';
import type { TimeRange } from '../../store/store.ts';

/** A step of a thread. */
export interface LanePlace {
  thread: number;
  step: number;
}

/** A state of a step. */
export interface LaneShare {
  state: number;
  share: number;
  /** Counted in an interval, but not told when. */
  spread: number;
}

/** In the order of states. */
export function sharesAt({ steps, states, shares, spread }: LaneThread, step: number): LaneShare[] {
  const found: LaneShare[] = [];
  for (let i = firstOf(steps, step); steps[i] === step; i++)
    found.push({ state: states[i]!, share: shares[i]!, spread: spread[i]! });
  return found;
}

/** Index of the first that is not less. */
function firstOf(steps: readonly number[], wanted: number): number {
  let [from, to] = [0, steps.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (steps[middle]! < wanted) from = middle + 1;
    else to = middle;
  }
  return from;
}

export const stepSpan = ({ fromMs, toMs, steps }: LanesAnswer, step: number): TimeRange => {
  const stepMs = (toMs - fromMs) / steps;
  return { fromMs: fromMs + step * stepMs, toMs: fromMs + (step + 1) * stepMs };
};

/** Where arrow keys lead; undefined: the key is none of them. */
export function movePlace(
  { threads, steps }: LanesAnswer,
  place: LanePlace | undefined,
  key: string,
): LanePlace | undefined {
  const moves: Record<string, [threads: number, steps: number]> = {
    ArrowUp: [-1, 0],
    ArrowDown: [1, 0],
    ArrowLeft: [0, -1],
    ArrowRight: [0, 1],
    PageUp: [-10, 0],
    PageDown: [10, 0],
    Home: [0, -steps],
    End: [0, steps],
  };
  const move = Object.hasOwn(moves, key) ? moves[key] : undefined;
  if (move === undefined || threads.length === 0) return undefined;
  if (place === undefined) return { thread: 0, step: 0 };
  const clamp = (value: number, length: number): number => Math.min(length - 1, Math.max(0, value));
  return { thread: clamp(place.thread + move[0], threads.length), step: clamp(place.step + move[1], steps) };
}

/** A part of the time around a place: half of it, or twice as much. */
export function zoomAround({ fromMs, toMs }: TimeRange, middleMs: number, factor: number): TimeRange {
  const length = Math.max(MIN_SPAN_MS, (toMs - fromMs) * factor);
  const share = (middleMs - fromMs) / (toMs - fromMs);
  const start = Math.round(middleMs - length * share);
  return { fromMs: start, toMs: Math.round(start + length) };
}

/** Timestamps are kept in milliseconds. */
export const MIN_SPAN_MS = 20;
