import type { Column, RowQuery, Rows, SamplePart } from './store.ts';

/**
 * Rows of samples, which know their series, for a query that may ask for groups of series.
 *
 * @param read answers queries without groups
 */
export async function rowsByGroup(
  part: Pick<SamplePart, 'series'>,
  query: RowQuery,
  read: (query: RowQuery) => Promise<Rows>,
): Promise<Rows> {
  const wantsGroups = query.by.includes('group');
  if (!wantsGroups && query.groups === undefined) return read(query);
  const table = await part.series();
  const { groups, series } = query;
  let mask = series;
  if (groups?.includes(0)) {
    mask = new Uint8Array(table.length);
    for (let id = 0; id < mask.length; id++) mask[id] = groups[table.groupOf(id)]! & (series?.[id] ?? 1);
  }
  const by = new Set(query.by.map((column): Column => (column === 'group' ? 'series' : column)));
  const rows = await read({ ...query, series: mask, groups: undefined, by: [...by] });
  if (!wantsGroups) return rows;
  const found = new Uint32Array(rows.length);
  for (let row = 0; row < found.length; row++) found[row] = table.groupOf(rows.series![row]!);
  return { ...rows, groups: found };
}
