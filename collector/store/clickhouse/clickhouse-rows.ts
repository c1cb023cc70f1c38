/** The SQL that reads rows of a part that a server keeps, summed there, and what its answer says. */
import type { PartInfo } from '../database/database-part.ts';
import type { Column, RowQuery, Rows } from '../store.ts';

/** How a server names groups of a part's series. */
export interface GroupKeys {
  /** Of a row of the table `series`: a number. */
  sql: string;
  /** Of each such number, the group's index. */
  ids: ReadonlyMap<number, number>;
}

/** SQL of the columns that the server has. */
const SQL_COLUMNS: Record<Column, string> = {
  time: 'step',
  node: 'node',
  series: 'series',
  cpu: 'cpu',
  link: 'link',
  group: 'series_group',
};

/** Not `::`, which ClickHouse reads as a cast of a text after a number in parentheses. */
const double = (expression: number | string): string => `CAST(${expression} AS DOUBLE)`;

/** Undefined where nothing can match. Every value of the query in it is a number. */
export function rowsSql(info: PartInfo, query: RowQuery, keys?: GroupKeys): string | undefined {
  const masks = maskConditions(query, keys);
  if (masks === undefined) return undefined;
  const rows = samplesSql(info, query, { masks, keys });
  if (query.limit !== undefined) return `${rows} ORDER BY t LIMIT ${query.limit}`;
  const columns = query.by.map((column) => SQL_COLUMNS[column]);
  const group = columns.length === 0 ? '' : `GROUP BY ${columns.join()}`;
  const value = query.counts ? 'count(*)' : 'coalesce(sum(weight), 0)';
  return `SELECT ${[...columns, double(value)].join()} FROM (${rows}) ${group}`;
}

/** Undefined where a mask wants nothing. */
function maskConditions(query: RowQuery, keys: GroupKeys | undefined): string[] | undefined {
  const conditions: string[] = [];
  for (const [column, mask] of [
    ['series', query.series],
    ['node', query.nodes],
    ['cpu', query.cpus],
    ['link', query.links],
  ] as const) {
    if (mask === undefined || !mask.includes(0)) continue;
    const ids: number[] = [];
    for (const [id, wanted] of mask.entries()) if (wanted === 1) ids.push(id);
    if (ids.length === 0) return undefined;
    conditions.push(`${column} IN (${ids.join()})`);
  }
  if (keys === undefined || !query.groups?.includes(0)) return conditions;
  const wanted = [...keys.ids].filter(([, id]) => query.groups![id] === 1).map(([key]) => key);
  return wanted.length === 0 ? undefined : [...conditions, `series_group IN (${wanted.join()})`];
}

function samplesSql(
  info: PartInfo,
  query: RowQuery,
  { masks, keys }: { masks: readonly string[]; keys: GroupKeys | undefined },
): string {
  const from = query.fromMs - info.startMs;
  const t = query.resolutionMs === 1 ? 't' : `(t - t % ${query.resolutionMs})`;
  const step = query.stepMs === 1 ? t : `floor((${t} - ${double(from)}) / ${double(query.stepMs)} + 1e-9)`;
  const columns = query.by.map((column) => (column === 'time' ? `${step} AS step` : SQL_COLUMNS[column]));
  const conditions = [`part = ${info.id}`, ...masks];
  if (query.fromMs > info.minMs) conditions.push(`t >= ${from}`);
  if (query.toMs <= info.maxMs) conditions.push(`t < ${query.toMs - info.startMs}`);
  const isGrouped = keys !== undefined && (query.by.includes('group') || query.groups?.includes(0));
  const named = isGrouped
    ? `ANY LEFT JOIN (SELECT id AS series, ${keys.sql} AS series_group FROM series WHERE part = ${info.id}) AS named USING (series)`
    : '';
  return `SELECT ${[...columns, 'weight'].join()} FROM samples ${named} WHERE ${conditions.join(' AND ')}`;
}

/** @param answer to `rowsSql` */
export function readRows(answer: number[][], query: RowQuery, startMs: number, keys?: GroupKeys): Rows {
  const atGroup = query.by.indexOf('group');
  const groups =
    keys && atGroup >= 0 ? (answer[atGroup] ?? []).map((key) => keys.ids.get(key) ?? -1) : undefined;
  // groups that another collector has added meanwhile
  const isKnown = groups?.includes(-1) ? groups.map((group) => group >= 0) : undefined;
  const known = (column: number[]): number[] => (isKnown ? column.filter((_, row) => isKnown[row]) : column);
  const columns = isKnown ? answer.map(known) : answer;
  const column = (name: Column): number[] | undefined => {
    const index = query.by.indexOf(name);
    return index < 0 ? undefined : (columns[index] ?? []);
  };
  const from = query.fromMs - startMs;
  const times = column('time');
  const weights = columns[query.by.length] ?? [];
  return {
    length: weights.length,
    times: query.stepMs === 1 ? times : times?.map((step) => from + step * query.stepMs),
    nodes: column('node'),
    series: column('series'),
    groups: groups && known(groups),
    cpus: column('cpu'),
    links: column('link'),
    weights,
  };
}
