import type { RowQuery, Rows } from './store.ts';

export const EMPTY_ROWS: Rows = {
  length: 0,
  times: [],
  nodes: [],
  series: [],
  groups: [],
  cpus: [],
  links: [],
  weights: [],
};

/**
 * Rows of a part of which no sample has a link, as nearly always.
 *
 * @param read answers queries without links
 */
export async function linklessRows(query: RowQuery, read: (query: RowQuery) => Promise<Rows>): Promise<Rows> {
  if (query.links !== undefined && query.links[0] !== 1) return EMPTY_ROWS;
  return read({ ...query, links: undefined, by: query.by.filter((column) => column !== 'link') });
}
