/**
 * Times that samples say were spent up to their timestamp, as a wait is at its end: a timeline has each where it was, not all of it
 * in its last step. Whole nanoseconds: what neighbouring steps or ranges get adds up to the value.
 */
import { valueTypeName } from '../../common/profile/model/profile-type.ts';
import { LOCK, OFF_CPU, WAIT_REPORTED_MS, WALL_TIME } from '../../common/profile/model/thread-types.ts';
import type { SampleFilter, SamplePart } from '../store/store.ts';

const SPREAD: ReadonlySet<string> = new Set([OFF_CPU, LOCK, WALL_TIME]);
/** Of longer steps nobody sees it. */
const MAX_STEP_MS = 2 * WAIT_REPORTED_MS;
const NS = 1e6;

export const isSpread = (parts: readonly SamplePart[], stepMs: number): boolean =>
  stepMs < MAX_STEP_MS && parts.some(({ type }) => SPREAD.has(valueTypeName(type.sampleType)));

/** What ends behind the range may have begun in it. */
export const withLate = (filter: SampleFilter): SampleFilter => ({
  ...filter,
  toMs: filter.toMs + WAIT_REPORTED_MS,
});

/**
 * Adds what of a value lies in each step.
 *
 * @param endMs after the start of the first step
 * @param ns what ended then
 */
export function spread(timeline: Float64Array, endMs: number, ns: number, stepMs: number): void {
  const startMs = endMs - ns / NS;
  const stepAt = (ms: number): number => Math.floor(ms / stepMs);
  const before = (ms: number): number => (ms >= endMs ? ns : Math.max(0, Math.round((ms - startMs) * NS)));
  const last = Math.min(timeline.length - 1, stepAt(endMs));
  const first = Math.max(0, stepAt(startMs));
  let done = before(first * stepMs);
  for (let step = first; step <= last; step++) {
    const next = before((step + 1) * stepMs);
    timeline[step]! += next - done;
    done = next;
  }
}
