import type { TimeRange } from '../../store/store.ts';

/** Of a label, with some air, in CSS pixels. */
const LABEL_WIDTH = 96;
const MINUTE = 60_000;
const STEPS_MS = [1000, 2000, 5000, 10_000, 15_000, 30_000]
  .concat([1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720].map((n) => n * MINUTE))
  .concat([1, 2, 7, 14, 28].map((n) => n * 1440 * MINUTE));

/** Round times that have room; none where the last one would be cut. */
export function timeTicks({ fromMs, toMs }: TimeRange, width: number): number[] {
  const msPerPixel = (toMs - fromMs) / Math.max(1, width);
  const step = STEPS_MS.find((ms) => ms / msPerPixel >= LABEL_WIDTH) ?? STEPS_MS.at(-1)!;
  const margin = (LABEL_WIDTH / 2) * msPerPixel;
  const ticks: number[] = [];
  for (let ms = Math.ceil((fromMs + margin / 2) / step) * step; ms <= toMs - margin; ms += step)
    ticks.push(ms);
  return ticks;
}
