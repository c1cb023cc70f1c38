import { ROW_HEIGHT } from './use-rows.ts';

/** Stands for rows outside of the viewport. */
export function RowGap({ rows }: { rows: number }) {
  return rows > 0 ? <tr style={{ height: `${rows * ROW_HEIGHT}px` }} /> : null;
}
