import { type Parameters, readRange } from '../../collector/api/parameters.ts';
import type { Query } from './query-client.ts';

interface BaseFlags {
  from?: string | undefined;
  to?: string | undefined;
  range?: string | undefined;
  where?: string | undefined;
  baseFrom?: string | undefined;
  baseTo?: string | undefined;
  baseRange?: string | undefined;
  baseWhere?: string | undefined;
}

/**
 * What `diff` compares with. Without a time of its own it is the time before, or, where another filter is given, the same
 * time: two filters are compared then.
 *
 * @throws Error for a time that can't be read, and for all of the time, before which there is none
 */
export function baseOf(flags: BaseFlags, nowMs: number): Query {
  const { from, to, range, where, baseFrom, baseTo, baseRange, baseWhere } = flags;
  const base_where = baseWhere ?? where;
  if (baseFrom !== undefined || baseTo !== undefined || baseRange !== undefined)
    return { base_from: baseFrom, base_to: baseTo, base_range: baseRange, base_where };
  if (baseWhere !== undefined) return { base_from: from, base_to: to, base_range: range, base_where };
  if (range === 'all' && from === undefined)
    throw new Error(
      'before all of the time there is nothing to compare with: give --range 15m, or --base-where',
    );
  const given: Record<string, string | undefined> = { from, to, range };
  const parameters: Parameters = { get: (name) => given[name] ?? null };
  const { fromMs, toMs } = readRange(parameters, { stats: nothingStored }, () => nowMs);
  return { base_from: Math.floor(2 * fromMs - toMs), base_to: Math.floor(fromMs), base_where };
}

const nothingStored = (): never => {
  throw new Error('only a range of all asks what is stored');
};
