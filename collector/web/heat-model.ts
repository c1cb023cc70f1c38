import type { HeatmapAnswer } from '../api/types.ts';
import type { TimeRange } from '../store/store.ts';

const STEPS = 10;

/** From nearly the background to full, in steps that can be told apart; `share` in (0, 1]. */
export function heatColour(share: number, dark: boolean): string {
  const step = Math.ceil(share * STEPS) / STEPS;
  const lightness = dark ? 0.28 + 0.5 * step : 0.95 - 0.5 * step;
  return `oklch(${lightness.toFixed(3)} ${(0.03 + 0.13 * step).toFixed(3)} ${60 - 30 * step})`;
}

type Grid = Omit<HeatmapAnswer, 'cells'>;

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
