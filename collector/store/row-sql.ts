/**
 * The SQL that reads rows of a part. Who asks for times and series only gets them from the sums of ten seconds, which
 * have some 15 times fewer rows than there are samples; where a step or the range begins within ten seconds, these
 * are read from the samples, so that both say the same.
 */
import type { PartInfo } from './duckdb-part.ts';
import type { Column, RowQuery } from './store.ts';

export const SUM_MS = 10_000;
const SUMS_PER_PART = 360;
/** With more cut sums than this reading the samples is cheaper. */
const MAX_CUT_SUMS = 60;

const SQL_COLUMNS: Record<Column, string> = { time: 'step', node: 'node', series: 'series', cpu: 'cpu' };

/** Undefined where nothing can match. Every value in it is a number. */
export function rowsSql(info: PartInfo, query: RowQuery): string | undefined {
  const masks = maskConditions(query);
  if (masks === undefined) return undefined;
  const columns = query.by.map((column) => SQL_COLUMNS[column]);
  if (query.limit !== undefined) {
    const from = samplesSql(info, query, masks);
    return `${from} ORDER BY t LIMIT ${query.limit}`;
  }
  const cut = canUseSums(info, query) ? cutSums(info, query) : undefined;
  const rows =
    cut === undefined ? samplesSql(info, query, masks) : sumsSql(info, query, masks, mergeRanges(cut));
  const group = columns.length === 0 ? '' : `GROUP BY ${columns.join()}`;
  return `SELECT ${[...columns, 'coalesce(sum(weight), 0)::DOUBLE'].join()} FROM (${rows}) ${group}`;
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
  const step = query.stepMs === 1 ? t : `floor((${t} - (${from})::DOUBLE) / ${query.stepMs}::DOUBLE + 1e-9)`;
  const columns = query.by.map((column) => (column === 'time' ? `${step} AS step` : SQL_COLUMNS[column]));
  return `SELECT ${[...columns, 'weight'].join()}`;
}

function rangeConditions(info: PartInfo, query: RowQuery, t: string): string[] {
  const conditions: string[] = [];
  if (query.fromMs > info.minMs) conditions.push(`${t} >= ${query.fromMs - info.startMs}`);
  if (query.toMs <= info.maxMs) conditions.push(`${t} < ${query.toMs - info.startMs}`);
  return conditions;
}

const whereSql = (conditions: string[]): string =>
  conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`;

function samplesSql(info: PartInfo, query: RowQuery, more: string[]): string {
  const conditions = [...rangeConditions(info, query, 't'), ...more];
  return `${selected(info, query, 't')} FROM samples_${info.id} ${whereSql(conditions)}`;
}

function sumsSql(info: PartInfo, query: RowQuery, masks: string[], cut: readonly Range[]): string {
  const t = `(tens::UINTEGER * ${SUM_MS})::UINTEGER`;
  const isCut = cut.map(([from, to]) => `tens BETWEEN ${from} AND ${to - 1}`);
  const whole = isCut.map((condition) => `NOT (${condition})`);
  const conditions = [...rangeConditions(info, query, t), ...whole, ...masks];
  const sums = `${selected(info, query, t)} FROM sums_${info.id} ${whereSql(conditions)}`;
  if (cut.length === 0) return sums;
  const within = cut.map(([from, to]) => `t >= ${from * SUM_MS} AND t < ${to * SUM_MS}`);
  return `${sums} UNION ALL ${samplesSql(info, query, [`(${within.join(' OR ')})`, ...masks])}`;
}

function canUseSums({ hasSums }: PartInfo, { by, nodes, cpus }: RowQuery): boolean {
  const isFree = (mask: Uint8Array | undefined): boolean => mask === undefined || !mask.includes(0);
  return hasSums && isFree(nodes) && isFree(cpus) && !by.includes('node') && !by.includes('cpu');
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
