import type { TimeRange } from '../../store/store.ts';
import { askSpan, MAX_BOXES } from '../state/questions.ts';
import type { ViewProperties } from '../state/view-properties.ts';

type Shown = Pick<ViewProperties, 'state' | 'timeline'>;

/** The shown time. */
export const shownSpan = ({ state, timeline }: Shown): TimeRange => state.brush ?? timeline;

/** What it is compared with: what was chosen, or else the same length of time right before. */
export function baseOf({ state, timeline }: Shown): TimeRange {
  const now = shownSpan({ state, timeline });
  if (state.base !== undefined) return state.base;
  if (state.baseWhere !== undefined) return now;
  const length = now.toMs - now.fromMs;
  // Within the timeline there may be no time before: half of it is compared with the other.
  return state.brush === undefined || now.fromMs - length >= timeline.fromMs
    ? { fromMs: now.fromMs - length, toMs: now.fromMs }
    : { fromMs: timeline.fromMs, toMs: Math.max(now.fromMs, timeline.fromMs + 1) };
}

/** A query about both. */
export function askDiff(query: 'diff' | 'difftree', shown: Shown, limit?: number): string {
  const { state } = shown;
  const base = baseOf(shown);
  return askSpan(query, shownSpan(shown), {
    where: state.where,
    type: state.type,
    base_from: Math.round(base.fromMs),
    base_to: Math.round(base.toMs),
    base_where: state.baseWhere ?? state.where,
    transform: state.transform,
    zoom: query === 'difftree' ? state.zoom : undefined,
    limit: query === 'difftree' ? MAX_BOXES : limit,
  });
}
