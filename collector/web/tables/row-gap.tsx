import { ROW_HEIGHT } from '../state/use-rows.ts';

/** Stands for rows outside of the viewport. */
export function RowGap({ rows, rowHeight = ROW_HEIGHT }: { rows: number; rowHeight?: number }) {
  return rows > 0 ? <tr style={{ height: `${rows * rowHeight}px` }} /> : null;
}
