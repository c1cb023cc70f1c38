/**
 * The SQL that reads rows of a part, in words that DuckDB and ClickHouse share, and what its answer says. Who asks for
 * times and series only gets them from the sums of ten seconds, where the part has them: they have some 15 times fewer
 * rows than there are samples; where a step or the range begins within ten seconds, these are read from the samples,
 * so that both say the same.
 */
import type { PartInfo } from './database-part.ts';
import { SUM_MS, SUMS_PER_PART } from './part-sums.ts';
import type { Column, RowQuery, Rows } from './store.ts';

/** With more cut sums than this reading the samples is cheaper. */
const MAX_CUT_SUMS = 60;

const SQL_COLUMNS: Record<Column, string> = { time: 'step', node: 'node', series: 'series', cpu: 'cpu' };

export const EMPTY_ROWS: Rows = {
  length: 0,
  times: [],
  nodes: [],
  series: [],
  cpus: [],
  weights: [],
};

/** Where a part's rows are. */
export interface RowTables {
  samples: string;
  /** Undefined: the part has no sums of ten seconds. */
  sums?: string | undefined;
  /** What tells the part's rows apart in tables that have those of others too. */
  condition?: string;
}

/** A part, and where its rows are. */
type Source = PartInfo & RowTables;

/** Not `::`, which ClickHouse reads as a cast of a text after a number in parentheses. */
const double = (expression: number | string): string => `CAST(${expression} AS DOUBLE)`;

/** Undefined where nothing can match. Every value of the query in it is a number. */
export function rowsSql(info: PartInfo, query: RowQuery, tables: RowTables): string | undefined {
  const masks = maskConditions(query);
  if (masks === undefined) return undefined;
  const source: Source = { ...info, ...tables };
  if (query.limit !== undefined) {
    const from = samplesSql(source, query, masks);
    return `${from} ORDER BY t LIMIT ${query.limit}`;
  }
  const cut = canUseSums(source, query) ? cutSums(source, query) : undefined;
  const rows =
    cut === undefined ? samplesSql(source, query, masks) : sumsSql(source, query, masks, mergeRanges(cut));
  return groupedSql(query, rows);
}

function groupedSql(query: RowQuery, rows: string): string {
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

/** `t` is an expression for milliseconds since the part's start. */
function selected(info: PartInfo, query: RowQuery, t: string): string {
  const from = query.fromMs - info.startMs;
  const step = query.stepMs === 1 ? t : `floor((${t} - ${double(from)}) / ${double(query.stepMs)} + 1e-9)`;
  const columns = query.by.map((column) => (column === 'time' ? `${step} AS step` : SQL_COLUMNS[column]));
  return `SELECT ${[...columns, 'weight'].join()}`;
}

function rangeConditions(source: Source, query: RowQuery, t: string): string[] {
  const conditions = source.condition === undefined ? [] : [source.condition];
  if (query.fromMs > source.minMs) conditions.push(`${t} >= ${query.fromMs - source.startMs}`);
  if (query.toMs <= source.maxMs) conditions.push(`${t} < ${query.toMs - source.startMs}`);
  return conditions;
}

const whereSql = (conditions: string[]): string =>
  conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`;

function samplesSql(source: Source, query: RowQuery, more: string[]): string {
  const conditions = [...rangeConditions(source, query, 't'), ...more];
  return `${selected(source, query, 't')} FROM ${source.samples} ${whereSql(conditions)}`;
}

function sumsSql(source: Source, query: RowQuery, masks: string[], cut: readonly Range[]): string {
  const t = `(tens * ${double(SUM_MS)})`;
  const isCut = cut.map(([from, to]) => `tens BETWEEN ${from} AND ${to - 1}`);
  const whole = isCut.map((condition) => `NOT (${condition})`);
  const conditions = [...rangeConditions(source, query, t), ...whole, ...masks];
  const sums = `${selected(source, query, t)} FROM ${source.sums} ${whereSql(conditions)}`;
  if (cut.length === 0) return sums;
  return `${sums} UNION ALL ${samplesSql(source, query, [withinSql(cut), ...masks])}`;
}

function withinSql(ranges: readonly Range[]): string {
  const within = ranges.map(([from, to]) => `t >= ${from * SUM_MS} AND t < ${to * SUM_MS}`);
  return `(${within.join(' OR ')})`;
}

/**
 * What of a query the sums in memory answer, if they do, and the SQL for the rest: samples of the tens of seconds that
 * are wanted in part.
 */
export function splitBySums(
  info: PartInfo,
  query: RowQuery,
  tables: RowTables,
): { isWhole: Uint8Array; rest: string | undefined } | undefined {
  const cut = query.limit === undefined && canUseSums(tables, query) ? cutSums(info, query) : undefined;
  if (cut === undefined) return undefined;
  const isWhole = new Uint8Array(SUMS_PER_PART);
  isWhole.fill(1, tensOf(query.fromMs - info.startMs), tensOf(query.toMs - info.startMs));
  for (const tens of cut) isWhole[tens] = 0;
  const masks = maskConditions(query);
  if (masks === undefined || cut.length === 0) return { isWhole, rest: undefined };
  const samples = samplesSql({ ...info, ...tables }, query, [withinSql(mergeRanges(cut)), ...masks]);
  return { isWhole, rest: groupedSql(query, samples) };
}

/** Of a time before the part, its first. */
const tensOf = (t: number): number => Math.max(0, Math.ceil(t / SUM_MS));

function canUseSums({ sums }: RowTables, { by, nodes, cpus }: RowQuery): boolean {
  const isFree = (mask: Uint8Array | undefined): boolean => mask === undefined || !mask.includes(0);
  return sums !== undefined && isFree(nodes) && isFree(cpus) && !by.includes('node') && !by.includes('cpu');
}

/** The tens of seconds of which only some milliseconds are wanted, or that two steps share; undefined: too many. */
function cutSums(info: PartInfo, { fromMs, toMs, by, stepMs }: RowQuery): number[] | undefined {
  const [from, to] = [fromMs - info.startMs, toMs - info.startMs];
  const hasTime = by.includes('time');
  // the same arithmetic as in SQL: where the first and the last millisecond are in one step all between them are
  const stepOf = (t: number): number => (hasTime ? Math.floor((t - from) / stepMs + 1e-9) : 0);
  const cut: number[] = [];
  for (let tens = 0; tens < SUMS_PER_PART; tens++) {
    const [first, last] = [tens * SUM_MS, (tens + 1) * SUM_MS - 1];
    if (last < from || first >= to) continue;
    if (first < from || last >= to || stepOf(first) !== stepOf(last)) cut.push(tens);
    if (cut.length > MAX_CUT_SUMS) return undefined;
  }
  return cut;
}

/** From the first to before the second. */
type Range = [from: number, to: number];

function mergeRanges(sorted: readonly number[]): Range[] {
  const ranges: Range[] = [];
  for (const one of sorted) {
    const last = ranges.at(-1);
    if (last?.[1] === one) last[1]++;
    else ranges.push([one, one + 1]);
  }
  return ranges;
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
    cpus: column('cpu'),
    weights,
  };
}
