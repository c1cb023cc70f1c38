import type { RowQuery, Rows } from './store.ts';

/** @param rows of a part that begins at a multiple of the resolution */
export function roundTimes(rows: Rows, { resolutionMs }: Pick<RowQuery, 'resolutionMs'>): Rows {
  if (resolutionMs === 1 || rows.times === undefined) return rows;
  return { ...rows, times: Uint32Array.from(rows.times, (time) => time - (time % resolutionMs)) };
}
