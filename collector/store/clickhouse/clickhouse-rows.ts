/** The SQL that reads rows of a part that a server keeps, summed there, and what its answer says. */
import type { PartInfo } from '../database/database-part.ts';
import type { Column, RowQuery, Rows } from '../store.ts';

/** SQL of the columns that the server has; groups of series are known here only. */
const SQL_COLUMNS: Record<Column, string> = {
  time: 'step',
  node: 'node',
  series: 'series',
  cpu: 'cpu',
  group: '',
};

export const EMPTY_ROWS: Rows = {
  length: 0,
  times: [],
  nodes: [],
  series: [],
  groups: [],
  cpus: [],
  weights: [],
};

/** Not `::`, which ClickHouse reads as a cast of a text after a number in parentheses. */
const double = (expression: number | string): string => `CAST(${expression} AS DOUBLE)`;

/** Undefined where nothing can match. Every value of the query in it is a number. */
export function rowsSql(info: PartInfo, query: RowQuery): string | undefined {
  const masks = maskConditions(query);
  if (masks === undefined) return undefined;
  const rows = samplesSql(info, query, masks);
  if (query.limit !== undefined) return `${rows} ORDER BY t LIMIT ${query.limit}`;
  const columns = query.by.map((column) => SQL_COLUMNS[column]);
  const group = columns.length === 0 ? '' : `GROUP BY ${columns.join()}`;
  return `SELECT ${[...columns, double('coalesce(sum(weight), 0)')].join()} FROM (${rows}) ${group}`;
}

/** Undefined where a mask wants nothing. */
function maskConditions(query: RowQuery): string[] | undefined {
  const conditions: string[] = [];
  for (const [column, mask] of [
    ['series', query.series],
    ['node', query.nodes],
    ['cpu', query.cpus],
  ] as const) {
    if (mask === undefined || !mask.includes(0)) continue;
    const ids: number[] = [];
    for (const [id, wanted] of mask.entries()) if (wanted === 1) ids.push(id);
    if (ids.length === 0) return undefined;
    conditions.push(`${column} IN (${ids.join()})`);
  }
  return conditions;
}

function samplesSql(info: PartInfo, query: RowQuery, masks: readonly string[]): string {
  const from = query.fromMs - info.startMs;
  const t = query.resolutionMs === 1 ? 't' : `(t - t % ${query.resolutionMs})`;
  const step = query.stepMs === 1 ? t : `floor((${t} - ${double(from)}) / ${double(query.stepMs)} + 1e-9)`;
  const columns = query.by.map((column) => (column === 'time' ? `${step} AS step` : SQL_COLUMNS[column]));
  const conditions = [`part = ${info.id}`, ...masks];
  if (query.fromMs > info.minMs) conditions.push(`t >= ${from}`);
  if (query.toMs <= info.maxMs) conditions.push(`t < ${query.toMs - info.startMs}`);
  return `SELECT ${[...columns, 'weight'].join()} FROM samples WHERE ${conditions.join(' AND ')}`;
}

/** @param columns of the answer to `rowsSql` */
export function readRows(columns: number[][], query: RowQuery, startMs: number): Rows {
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
    groups: undefined,
    cpus: column('cpu'),
    weights,
  };
}
