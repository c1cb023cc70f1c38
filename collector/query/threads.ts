/** Threads, and what one of them did in steps of time. */

import { compileMasks } from '../store/matcher.ts';
import type { Series } from '../store/series.ts';
import type { SampleFilter, SamplePart } from '../store/store.ts';
import { partsOf } from './levels.ts';
import { type PartStore, rowQuery, stepOf, weightOf } from './rows.ts';
import type { SampleRow } from './samples.ts';
import { sumSeries } from './values.ts';

export type ThreadName = Pick<Series, 'process' | 'pid' | 'thread' | 'tid' | 'host'>;
export interface ThreadCount extends ThreadName {
  samples: number;
}

const nameOf = ({ process, pid, thread, tid, host }: ThreadName): ThreadName => ({
  process,
  pid,
  thread,
  tid,
  host,
});
/** Tells a thread from all others. */
export const threadKey = ({ process, pid, thread, tid, host }: ThreadName): string =>
  `${host}\0${process}\0${pid}\0${tid}\0${thread}`;

/** The busiest first. */
export async function readThreads(store: PartStore, filter: SampleFilter): Promise<ThreadCount[]> {
  const threads = new Map<string, ThreadCount>();
  await sumSeries(store, filter, (series, weight) => {
    const key = threadKey(series);
    const known = threads.get(key) ?? { ...nameOf(series), samples: 0 };
    known.samples += weight;
    threads.set(key, known);
  });
  return [...threads.values()].sort(
    (a, b) => b.samples - a.samples || (threadKey(a) < threadKey(b) ? -1 : 1),
  );
}

interface Step extends SampleRow {
  /** Events of the stack; `count` has those of all stacks of the step. */
  ownCount: number;
}

/**
 * For each step of the time and each thread the stack with the most events, in the order of time; `count` has the events of all
 * stacks. A step begins at its row's time.
 */
export async function readSteps(
  store: PartStore,
  filter: SampleFilter,
  steps: number,
): Promise<{ rows: SampleRow[]; parts: SamplePart[] }> {
  const parts = await partsOf(store, filter);
  const stepMs = (filter.toMs - filter.fromMs) / steps;
  const found = new Map<string, Step>();
  for (const [index, part] of parts.entries()) {
    const masks = await compileMasks(filter.where, part);
    const rows = await part.rows(rowQuery(filter, masks, ['time', 'node', 'series'], stepMs));
    const table = await part.series();
    const counts = new Map<string, { step: number; node: number; series: number; count: number }>();
    for (let row = 0; row < rows.length; row++) {
      const step = stepOf(rows.times![row]! + part.startMs - filter.fromMs, stepMs, steps);
      const [node, series] = [rows.nodes![row]!, rows.series![row]!];
      const key = `${step} ${series} ${node}`;
      const known = counts.get(key) ?? { step, node, series, count: 0 };
      known.count += weightOf(rows, row);
      counts.set(key, known);
    }
    for (const { step, node, series: id, count } of counts.values()) {
      const series = table.at(id);
      const key = `${step} ${threadKey(series)}`;
      const known = found.get(key);
      const row = { timeMs: filter.fromMs + step * stepMs, part: index, node, series, cpu: -1 };
      if (known === undefined) found.set(key, { ...row, count, ownCount: count });
      else {
        const all = known.count + count;
        found.set(
          key,
          count > known.ownCount ? { ...row, count: all, ownCount: count } : { ...known, count: all },
        );
      }
    }
  }
  return { rows: [...found.values()].sort((a, b) => a.timeMs - b.timeMs), parts };
}
