/** Single samples. */
import { compileMasks } from '../store/matcher.ts';
import type { Series } from '../store/series.ts';
import type { SampleFilter, SamplePart } from '../store/store.ts';
import { partsOf } from './levels.ts';
import { type PartStore, rowQuery, weightOf } from './rows.ts';

export interface SampleRow {
  timeMs: number;
  /** Index into the result's stacks. */
  part: number;
  node: number;
  series: Series;
  cpu: number;
  /** Events. */
  count: number;
}

/** Single samples in the order of time, at most `limit`; `total` says how many there are. */
export async function readSamples(
  store: PartStore,
  filter: SampleFilter,
  limit: number,
): Promise<{ rows: SampleRow[]; parts: SamplePart[]; total: number }> {
  const parts = await partsOf(store, filter);
  let found: SampleRow[] = [];
  let total = 0;
  for (const [index, part] of parts.entries()) {
    const masks = await compileMasks(filter.where, part);
    const counts = await part.rows(rowQuery(filter, masks, []));
    for (let row = 0; row < counts.length; row++) total += weightOf(counts, row);
    const query = rowQuery(filter, masks, ['time', 'node', 'series', 'cpu']);
    const rows = await part.rows({ ...query, limit });
    const table = await part.series();
    for (let row = 0; row < rows.length; row++) {
      found.push({
        timeMs: part.startMs + rows.times![row]!,
        part: index,
        node: rows.nodes![row]!,
        series: table.at(rows.series![row]!),
        cpu: rows.cpus![row]!,
        count: weightOf(rows, row),
      });
    }
    if (found.length > 2 * limit) found = earliest(found, limit);
  }
  return { rows: earliest(found, limit), parts, total };
}

const earliest = (rows: SampleRow[], limit: number): SampleRow[] =>
  rows.sort((a, b) => a.timeMs - b.timeMs).slice(0, limit);
