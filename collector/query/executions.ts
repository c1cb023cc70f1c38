/** How many executions of each process there were. */
import { compileMasks, type RowMasks } from '../store/matcher.ts';
import { SeriesTable } from '../store/series-table.ts';
import type { SampleFilter, SamplePart } from '../store/store.ts';
import { partsOf } from './levels.ts';
import type { PartStore } from './rows.ts';

/**
 * By process name. Of a part that is asked for as a whole no samples are read: each of its series has some. Days of short-lived
 * processes have millions of executions, so they are told apart in columns.
 */
export async function countExecutions(store: PartStore, filter: SampleFilter): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  const seen = new SeriesTable();
  for (const part of await partsOf(store, filter)) {
    const masks = await compileMasks(filter.where, part);
    const wanted = await wantedSeries(part, filter, masks);
    const table = await part.series();
    const names = part.groups.map(({ process, host }) => seen.internGroup({ ...NO_GROUP, process, host }));
    for (let id = 0; id < wanted.length; id++) {
      if (wanted[id] !== 1) continue;
      const { length } = seen;
      const group = table.groupOf(id);
      const execution = seen.intern(names[group]!, table.pidOf(id), 0, table.startOf(id));
      if (execution < length) continue;
      const { process } = part.groups[group]!;
      counts.set(process, (counts.get(process) ?? 0) + 1);
    }
  }
  return counts;
}

const NO_GROUP = {
  thread: '',
  path: '',
  command: '',
  containerId: '',
  cgroup: '',
  service: '',
  attributes: '',
  periodNanos: 0,
};

/** 1 for each series that has an event which passes. */
async function wantedSeries(
  part: SamplePart,
  { fromMs, toMs }: SampleFilter,
  masks: RowMasks,
): Promise<Uint8Array> {
  const { series, groups, nodes, cpus, links } = masks;
  if (part.isWithin?.({ fromMs, toMs }) && [nodes, cpus, links].every((mask) => mask === undefined)) {
    const table = await part.series();
    return Uint8Array.from(
      { length: table.length },
      (_, id) => (series?.[id] ?? 1) & (groups?.[table.groupOf(id)] ?? 1),
    );
  }
  const rows = await part.rows({ fromMs, toMs, ...masks, by: ['series'], stepMs: 1, resolutionMs: 1 });
  const wanted = new Uint8Array((await part.series()).length);
  for (let row = 0; row < rows.length; row++) wanted[rows.series![row]!] = 1;
  return wanted;
}
