import type { TimeRange } from '../../store/store.ts';

const PAGE_STEPS = 10;

/**
 * Where a key moves the brush: arrows move it, with Shift they move its end; Page keys by ten steps. The first key
 * makes a brush of a tenth of the timeline at its end.
 *
 * @returns undefined for keys that do nothing here
 */
export function moveBrush(
  overview: TimeRange,
  stepMs: number,
  brush: TimeRange | undefined,
  key: string,
  isShift: boolean,
): TimeRange | undefined {
  const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -PAGE_STEPS, PageDown: PAGE_STEPS }[key];
  if (steps === undefined && key !== 'Home' && key !== 'End') return undefined;
  const { fromMs, toMs } = overview;
  if (brush === undefined) {
    const length = Math.max(stepMs, snap((toMs - fromMs) / 10, 0, stepMs));
    return key === 'Home' ? { fromMs, toMs: fromMs + length } : { fromMs: toMs - length, toMs };
  }
  const length = brush.toMs - brush.fromMs;
  if (steps === undefined) {
    return key === 'Home' ? { fromMs, toMs: fromMs + length } : { fromMs: toMs - length, toMs };
  }
  const moved = steps * stepMs;
  if (isShift) {
    return { fromMs: brush.fromMs, toMs: clamp(brush.toMs + moved, brush.fromMs + stepMs, toMs) };
  }
  const start = clamp(brush.fromMs + moved, fromMs, Math.max(fromMs, toMs - length));
  return { fromMs: start, toMs: start + length };
}

/** Whole steps that hold both ends; undefined if that is nothing. */
export function snapBrush(
  overview: TimeRange,
  stepMs: number,
  aMs: number,
  bMs: number,
): TimeRange | undefined {
  const down = (ms: number): number => overview.fromMs + Math.floor((ms - overview.fromMs) / stepMs) * stepMs;
  const fromMs = Math.max(overview.fromMs, down(Math.min(aMs, bMs)));
  const toMs = Math.min(overview.toMs, down(Math.max(aMs, bMs)) + stepMs);
  return fromMs < toMs ? { fromMs: Math.round(fromMs), toMs: Math.round(toMs) } : undefined;
}

const snap = (ms: number, origin: number, stepMs: number): number =>
  origin + Math.round((ms - origin) / stepMs) * stepMs;

const clamp = (value: number, low: number, high: number): number => Math.min(high, Math.max(low, value));
