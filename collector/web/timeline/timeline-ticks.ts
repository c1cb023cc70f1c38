/** What the timeline's axes say: all of it readable, none of it cut by the edge of the picture. */
import { formatClock } from '../../../common/flame/format.ts';

/** Of the axes' font, with some air. */
const CHARACTER_WIDTH = 6.5;

/** Times below the axis; empty where one would be cut. */
export function timeLabels(
  times: readonly number[],
  { fromMs, toMs }: { fromMs: number; toMs: number },
  width: number,
): string[] {
  const spanMs = toMs - fromMs;
  const digits = [0, 1, 2].find((n) => times.every((ms) => ms % 10 ** (3 - n) === 0)) ?? 3;
  return times.map((ms) => {
    const fraction = digits === 0 ? '' : (ms / 1000).toFixed(3).slice(-4, digits - 3 || undefined);
    const label = formatClock(ms, spanMs) + fraction;
    // left of the axis are its own labels
    const room = (Math.min(ms - fromMs, toMs - ms) / spanMs) * width;
    return room < (label.length * CHARACTER_WIDTH) / 2 ? '' : label;
  });
}

/** Room that labels left of the axis need. */
export const labelsWidth = (labels: readonly string[]): number =>
  Math.ceil(CHARACTER_WIDTH * Math.max(0, ...labels.map(({ length }) => length)));
