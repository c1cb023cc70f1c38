/** What every view is made from: one pass over the parts of the store that a filter touches. */
import { isSeriesLabel, type SeriesLabel } from '../../common/profile/filter.ts';
import { compileMasks, MAX_CPUS, type RowMasks, seriesValue } from '../store/matcher.ts';
import type {
  Column,
  ProcessCount,
  RowQuery,
  Rows,
  SampleFilter,
  SamplePart,
  Series,
  Store,
  TimeRange,
  Window,
} from '../store/store.ts';

type PartStore = Pick<Store, 'parts'>;

const EVERYTHING: RowMasks = { series: undefined, nodes: undefined, cpus: undefined };

const rowQuery = (range: TimeRange, masks: RowMasks, by: Column[], stepMs = 1): RowQuery => ({
  fromMs: range.fromMs,
  toMs: range.toMs,
  ...masks,
  by,
  stepMs,
});

const weightOf = (rows: Rows, row: number): number => rows.weights?.[row] ?? 1;

/** What happened in a time range: stacks with counts, and a timeline of `steps` equal steps. */
export async function readWindow(store: PartStore, filter: SampleFilter, steps: number): Promise<Window> {
  const window: Window = {
    parts: [],
    samples: 0,
    allSamples: 0,
    cpuNanos: 0,
    cpus: 0,
    timeline: new Float64Array(steps),
  };
  const cpusByHost = new Map<string, Set<number>>();
  for (const part of await store.parts(filter)) {
    const masks = await compileMasks(filter.where, part);
    noteCpus(part, await part.rows(rowQuery(filter, EVERYTHING, ['series', 'cpu'])), window, cpusByHost);
    await addTimeline(part, filter, masks, window);
    await addStacks(part, filter, masks, window);
  }
  for (const seen of cpusByHost.values()) window.cpus += seen.size;
  return window;
}

function noteCpus(part: SamplePart, rows: Rows, window: Window, cpusByHost: Map<string, Set<number>>): void {
  const byHost = part.series.map(({ host }) => {
    const seen = cpusByHost.get(host) ?? new Set();
    cpusByHost.set(host, seen);
    return seen;
  });
  for (let row = 0; row < rows.length; row++) {
    window.allSamples += weightOf(rows, row);
    const cpu = rows.cpus![row]!;
    if (cpu >= 0 && cpu < MAX_CPUS) byHost[rows.series![row]!]!.add(cpu);
  }
}

async function addTimeline(part: SamplePart, filter: SampleFilter, masks: RowMasks, window: Window) {
  const { timeline } = window;
  const stepMs = (filter.toMs - filter.fromMs) / timeline.length;
  const rows = await part.rows(rowQuery(filter, masks, ['series', 'time'], stepMs));
  const shift = part.startMs - filter.fromMs;
  for (let row = 0; row < rows.length; row++) {
    const weight = weightOf(rows, row);
    window.samples += weight;
    window.cpuNanos += weight * part.series[rows.series![row]!]!.periodNanos;
    timeline[stepOf(rows.times![row]! + shift, stepMs, timeline.length)]! += weight;
  }
}

/** Times that were rounded to a step must not fall into the one before it. */
const stepOf = (offsetMs: number, stepMs: number, steps: number): number =>
  Math.min(steps - 1, Math.max(0, Math.floor(offsetMs / stepMs + 1e-9)));

async function addStacks(part: SamplePart, filter: SampleFilter, masks: RowMasks, window: Window) {
  const rows = await part.rows(rowQuery(filter, masks, ['node']));
  if (rows.length === 0) return;
  const stacks = await part.stacks();
  const selfCounts = new Float64Array(stacks.parents.length);
  for (let row = 0; row < rows.length; row++) selfCounts[rows.nodes![row]!]! += weightOf(rows, row);
  window.parts.push({ ...stacks, selfCounts });
}

interface ProcessTally extends ProcessCount {
  tids: Set<number>;
}

/** One entry per execution of a process, in no order. */
export async function readProcesses(store: PartStore, filter: SampleFilter): Promise<ProcessCount[]> {
  const tallies = new Map<string, ProcessTally>();
  await sumSeries(store, filter, (series, weight) => {
    const { process: name, pid, path, containerId, host, startUnixNano, tid } = series;
    const key = `${pid} ${startUnixNano} ${host} ${name}`;
    let tally = tallies.get(key);
    if (tally === undefined) {
      tally = { name, pid, path, containerId, samples: 0, threads: 0, tids: new Set() };
      tallies.set(key, tally);
    }
    tally.samples += weight;
    tally.tids.add(tid);
  });
  return [...tallies.values()].map(({ tids, ...count }) => ({ ...count, threads: tids.size }));
}

/** CPU time that the filtered events stand for. */
export async function sumCpuNanos(store: PartStore, filter: SampleFilter): Promise<number> {
  let nanos = 0;
  await sumSeries(store, filter, ({ periodNanos }, weight) => {
    nanos += periodNanos * weight;
  });
  return nanos;
}

async function sumSeries(
  store: PartStore,
  filter: SampleFilter,
  add: (series: Series, weight: number) => void,
): Promise<void> {
  for (const part of await store.parts(filter)) {
    const rows = await part.rows(rowQuery(filter, await compileMasks(filter.where, part), ['series']));
    const sums = new Float64Array(part.series.length);
    for (let row = 0; row < rows.length; row++) sums[rows.series![row]!]! += weightOf(rows, row);
    for (const [id, sum] of sums.entries()) if (sum > 0) add(part.series[id]!, sum);
  }
}

export interface ValueCount {
  value: string;
  samples: number;
}

/** Each value of a label with its samples, the most frequent first. */
export async function readValues(store: PartStore, filter: SampleFilter, key: string): Promise<ValueCount[]> {
  const counts = new Map<string, number>();
  const add = (value: string, weight: number): void =>
    void counts.set(value, (counts.get(value) ?? 0) + weight);
  if (isSeriesLabel(key)) {
    await sumSeries(store, filter, (series, weight) => add(seriesValue(series, key), weight));
  } else {
    for (const part of await store.parts(filter)) await addNodeValues(part, filter, key, add);
  }
  return [...counts]
    .map(([value, samples]) => ({ value, samples }))
    .sort((a, b) => b.samples - a.samples || (a.value < b.value ? -1 : 1));
}

/** By CPU, or by the leaf's kind or name. */
async function addNodeValues(
  part: SamplePart,
  filter: SampleFilter,
  key: string,
  add: (value: string, weight: number) => void,
): Promise<void> {
  const masks = await compileMasks(filter.where, part);
  const rows = await part.rows(rowQuery(filter, masks, [key === 'cpu' ? 'cpu' : 'node']));
  if (key === 'cpu') {
    for (let row = 0; row < rows.length; row++) add(String(rows.cpus![row]!), weightOf(rows, row));
    return;
  }
  const { frames, nodeFrames } = await part.stacks();
  for (let row = 0; row < rows.length; row++) {
    const frame = frames[nodeFrames[rows.nodes![row]!]!]!;
    add(key === 'kind' ? frame.kind : frame.name, weightOf(rows, row));
  }
}

/** Events a step, in groups by the value of a label that series have. */
export async function readTimeline(
  store: PartStore,
  filter: SampleFilter,
  steps: number,
  by: SeriesLabel | 'cpu' | undefined,
): Promise<Map<string, Float64Array>> {
  const groups = new Map<string, Float64Array>();
  await addSteps(store, filter, { steps, by }, (value) => {
    const group = groups.get(value) ?? new Float64Array(steps);
    groups.set(value, group);
    return group;
  });
  return groups;
}

export interface GroupedTimeline {
  samples: number;
  groupCount: number;
  /** The largest first. */
  groups: { value: string; samples: number; counts: number[] }[];
  /** Of all other groups. */
  other: number[];
}

/** As {@link readTimeline}, with the `max` largest groups apart: a label may have a million values, as PIDs have. */
export async function readLargestGroups(
  store: PartStore,
  filter: SampleFilter,
  steps: number,
  by: SeriesLabel | 'cpu' | undefined,
  max: number,
): Promise<GroupedTimeline> {
  const values = by === undefined ? undefined : await readValues(store, filter, by);
  const other = new Float64Array(steps);
  const groups = new Map(
    (values ?? [{ value: '' }]).slice(0, max).map(({ value }) => [value, new Float64Array(steps)]),
  );
  await addSteps(store, filter, { steps, by }, (value) => groups.get(value) ?? other);
  const sum = (counts: Float64Array): number => counts.reduce((a, b) => a + b, 0);
  const named = [...groups]
    .map(([value, counts]) => ({ value, samples: sum(counts), counts: Array.from(counts) }))
    .filter(({ samples }) => samples > 0);
  return {
    samples: named.reduce((total, { samples }) => total + samples, sum(other)),
    groupCount: values?.length ?? named.length,
    groups: named,
    other: Array.from(other),
  };
}

interface Grouping {
  steps: number;
  by: SeriesLabel | 'cpu' | undefined;
}

/** Adds each event to its step of the group of its label's value. */
async function addSteps(
  store: PartStore,
  filter: SampleFilter,
  { steps, by }: Grouping,
  groupOf: (value: string) => Float64Array,
): Promise<void> {
  const stepMs = (filter.toMs - filter.fromMs) / steps;
  for (const part of await store.parts(filter)) {
    const masks = await compileMasks(filter.where, part);
    const columns: Column[] =
      by === undefined ? ['time'] : by === 'cpu' ? ['cpu', 'time'] : ['series', 'time'];
    const rows = await part.rows(rowQuery(filter, masks, columns, stepMs));
    const bySeries: Float64Array[] = [];
    const groupOfSeries = (id: number): Float64Array =>
      (bySeries[id] ??= groupOf(seriesValue(part.series[id]!, by as SeriesLabel)));
    const shift = part.startMs - filter.fromMs;
    for (let row = 0; row < rows.length; row++) {
      const group =
        by === undefined
          ? groupOf('')
          : by === 'cpu'
            ? groupOf(String(rows.cpus![row]!))
            : groupOfSeries(rows.series![row]!);
      group[stepOf(rows.times![row]! + shift, stepMs, steps)]! += weightOf(rows, row);
    }
  }
}

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
  const parts = await store.parts(filter);
  let found: SampleRow[] = [];
  let total = 0;
  for (const [index, part] of parts.entries()) {
    const masks = await compileMasks(filter.where, part);
    const counts = await part.rows(rowQuery(filter, masks, []));
    for (let row = 0; row < counts.length; row++) total += weightOf(counts, row);
    const query = rowQuery(filter, masks, ['time', 'node', 'series', 'cpu']);
    const rows = await part.rows({ ...query, limit });
    for (let row = 0; row < rows.length; row++) {
      found.push({
        timeMs: part.startMs + rows.times![row]!,
        part: index,
        node: rows.nodes![row]!,
        series: part.series[rows.series![row]!]!,
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
