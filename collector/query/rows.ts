/** Rows of a store's parts, as every reader asks for them. */
import type { RowMasks } from '../store/matcher.ts';
import { SUM_MS } from '../store/part-sums.ts';
import type { Column, RowQuery, Rows, Store, TimeRange } from '../store/store.ts';

export type PartStore = Pick<Store, 'parts'>;

/**
 * Of so long a step ten seconds count where they begin: stores have sums of ten seconds, and no two thousandths of a timeline's
 * width are seen. What begins before a range counts in its first step.
 */
const LONG_STEP_MS = 20 * SUM_MS;

export const rowQuery = (range: TimeRange, masks: RowMasks, by: Column[], stepMs = 1): RowQuery => ({
  fromMs: range.fromMs,
  toMs: range.toMs,
  ...masks,
  by,
  stepMs,
  resolutionMs: stepMs >= LONG_STEP_MS ? SUM_MS : 1,
});

export const weightOf = (rows: Rows, row: number): number => rows.weights?.[row] ?? 1;

/** Times that were rounded to a step must not fall into the one before it. */
export const stepOf = (offsetMs: number, stepMs: number, steps: number): number =>
  Math.min(steps - 1, Math.max(0, Math.floor(offsetMs / stepMs + 1e-9)));
