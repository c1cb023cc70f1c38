/**
 * Sums of ten seconds of a part, by CPU and group of series: a timeline of days reads them again with each look, and where
 * processes are short-lived they are hundreds of times fewer than samples are.
 */
import type { Column, RowQuery, Rows } from './store.ts';

export const SUM_MS = 10_000;
const SUMS_PER_PART = 360;
/** With more cut sums than this reading the samples is cheaper. */
const MAX_CUT_SUMS = 60;

/** Chunks of columns of one length each: tens of seconds since the part's start, groups, CPUs, events. The same three may come several times. */
export interface SumChunk {
  tens: Uint16Array;
  groups: Uint32Array;
  cpus: Int16Array;
  weights: Float64Array;
}

/** @param isWanted 1 for each of the part's tens of seconds that is wanted whole */
export function selectSums(chunks: readonly SumChunk[], query: RowQuery, isWanted: Uint8Array): Rows {
  const total = chunks.reduce((sum, { tens }) => sum + tens.length, 0);
  const times = new Uint32Array(total);
  const found = new Uint32Array(total);
  const foundCpus = new Int16Array(total);
  const sums = new Float64Array(total);
  let length = 0;
  for (const { tens, groups, cpus, weights } of chunks) {
    for (let row = 0; row < tens.length; row++) {
      if (isWanted[tens[row]!] !== 1) continue;
      if (query.groups !== undefined && query.groups[groups[row]!] !== 1) continue;
      if (query.cpus !== undefined && query.cpus[cpus[row]!] !== 1) continue;
      times[length] = tens[row]! * SUM_MS;
      found[length] = groups[row]!;
      foundCpus[length] = cpus[row]!;
      sums[length++] = weights[row]!;
    }
  }
  return {
    length,
    times: times.subarray(0, length),
    groups: found.subarray(0, length),
    cpus: foundCpus.subarray(0, length),
    weights: sums.subarray(0, length),
    nodes: undefined,
    series: undefined,
    links: undefined,
  };
}

/** From the first to before the second, in milliseconds since the part's start. */
export type Range = [from: number, to: number];

/** Splits a query: sums answer whole tens of seconds, the others are read from the samples. */
export interface SplitQuery {
  /** 1 for each of the part's tens of seconds that is wanted whole. */
  isWhole: Uint8Array;
  /** Tens of seconds that are wanted in part, or that lie in several steps. */
  cut: Range[];
}

/** Undefined where sums are of no use. */
export function splitBySums(startMs: number, query: RowQuery): SplitQuery | undefined {
  if (query.limit !== undefined || query.counts || !isSummed(query)) return undefined;
  const cut = cutSums(startMs, query);
  if (cut === undefined) return undefined;
  const isWhole = new Uint8Array(SUMS_PER_PART);
  isWhole.fill(1, tensOf(query.fromMs - startMs), tensOf(query.toMs - startMs));
  for (const tens of cut) isWhole[tens] = 0;
  return { isWhole, cut: mergeRanges(cut) };
}

/** Index of the ten seconds at or after a time; 0 for a time before the part. */
const tensOf = (t: number): number => Math.max(0, Math.ceil(t / SUM_MS));

function isSummed({ by, series, nodes, links }: RowQuery): boolean {
  const isFree = (mask: Uint8Array | undefined): boolean => mask === undefined || !mask.includes(0);
  const isOfSums = (column: Column): boolean => column !== 'node' && column !== 'series' && column !== 'link';
  return by.every(isOfSums) && [series, nodes, links].every(isFree);
}

/** The tens of seconds of which only some milliseconds are wanted, or that two steps share; undefined: too many. */
function cutSums(startMs: number, query: RowQuery): number[] | undefined {
  const { fromMs, toMs, by, stepMs, resolutionMs } = query;
  const [from, to] = [fromMs - startMs, toMs - startMs];
  const hasTime = by.includes('time') && resolutionMs < SUM_MS;
  // where the first and the last millisecond are in one step all between them are
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

function mergeRanges(sorted: readonly number[]): Range[] {
  const ranges: Range[] = [];
  for (const tens of sorted) {
    const last = ranges.at(-1);
    if (last?.[1] === tens * SUM_MS) last[1] += SUM_MS;
    else ranges.push([tens * SUM_MS, (tens + 1) * SUM_MS]);
  }
  return ranges;
}
