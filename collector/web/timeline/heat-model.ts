import type { HeatmapAnswer } from '../../api/types.ts';
import type { TimeRange } from '../../store/store.ts';

const STEPS = 10;

/** From nearly the background to full, in steps that can be told apart; `share` in (0, 1]. */
export function heatColour(share: number, dark: boolean): string {
  const step = Math.ceil(share * STEPS) / STEPS;
  const lightness = dark ? 0.28 + 0.5 * step : 0.95 - 0.5 * step;
  return `oklch(${lightness.toFixed(3)} ${(0.03 + 0.13 * step).toFixed(3)} ${60 - 30 * step})`;
}

const ROUND = [1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10];

/**
 * What full colour stands for: a round number above all, so that even the busiest cell is not the end of the key, but no more
 * than `most` where there can't be more.
 */
export function topOf(peak: number, most = Number.POSITIVE_INFINITY): number {
  if (!(peak > 0)) return Math.min(1, most);
  const unit = 10 ** Math.floor(Math.log10(peak));
  return Math.min(most, unit * (ROUND.find((n) => n * unit > peak) ?? 12.5));
}

/** From the lightest to the darkest, as shares of full colour. */
export const KEY_SHARES = Array.from({ length: STEPS }, (_, i) => (i + 1) / STEPS);

type Grid = Omit<HeatmapAnswer, 'cells' | 'type' | 'cpus'>;

/** The time of a cell. */
export function cellSpan({ fromMs, toMs, columns, rows }: Grid, cell: number): TimeRange {
  const cellMs = (toMs - fromMs) / (columns * rows);
  return { fromMs: fromMs + cell * cellMs, toMs: fromMs + (cell + 1) * cellMs };
}

/** The time of a cell's column, in whole milliseconds: one cell is too short for stacks that mean something. */
export function columnSpan(grid: Grid, cell: number): TimeRange {
  const column = Math.floor(cell / grid.rows);
  const columnMs = (grid.toMs - grid.fromMs) / grid.columns;
  const fromMs = Math.floor(grid.fromMs + column * columnMs);
  return { fromMs, toMs: Math.max(fromMs + 1, Math.round(grid.fromMs + (column + 1) * columnMs)) };
}

/** Where an arrow key leads; undefined for other keys. */
export function moveCell({ columns, rows }: Grid, cell: number | undefined, key: string): number | undefined {
  const step = { ArrowLeft: -rows, ArrowRight: rows, ArrowUp: -1, ArrowDown: 1 }[key];
  if (step === undefined) return undefined;
  if (cell === undefined) return (columns - 1) * rows;
  const next = cell + step;
  return next < 0 || next >= columns * rows ? cell : next;
}
