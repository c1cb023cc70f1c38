/** What every view is made from: one pass over the parts of the store that a filter touches. */

import {
  type AttributeLabel,
  isAttributeLabel,
  isSeriesLabel,
  type SeriesLabel,
} from '../../common/profile/filters/filter.ts';
import type { Transform } from '../../common/profile/filters/transform-list.ts';
import { readAttributes } from '../../common/profile/model/attributes.ts';
import { isCpuType } from '../../common/profile/model/profile-type.ts';
import {
  compileMasks,
  groupValue,
  isGroupLabel,
  MAX_CPUS,
  type RowMasks,
  seriesValue,
} from '../store/matcher.ts';
import { SUM_MS } from '../store/part-sums.ts';
import type { Series, SeriesGroup } from '../store/series.ts';
import type {
  Column,
  RowQuery,
  Rows,
  SampleFilter,
  SamplePart,
  StackCounts,
  Store,
  TimeRange,
  Window,
} from '../store/store.ts';
import type { LeafSums } from './flame/leaf-sums.ts';
import { FoldingParts } from './fold-parts.ts';
import { addLevelSteps, isLevel, partsOf } from './levels.ts';
import { isSpread, spread, withLate } from './spread.ts';
import { readSums, type SumsRead, takeFunctions } from './summed-parts.ts';
import { transformParts } from './transforms.ts';

type PartStore = Pick<Store, 'parts'>;

const EVERYTHING: RowMasks = { series: undefined, groups: undefined, nodes: undefined, cpus: undefined };

/**
 * Of so long a step ten seconds count where they begin: stores have sums of ten seconds, and no two thousandths of a timeline's
 * width are seen. What begins before a range counts in its first step.
 */
const LONG_STEP_MS = 20 * SUM_MS;

export const rowQuery = (range: TimeRange, masks: RowMasks, by: Column[], stepMs = 1): RowQuery => ({
  fromMs: range.fromMs,
  toMs: range.toMs,
  ...masks,
  by,
  stepMs,
  resolutionMs: stepMs >= LONG_STEP_MS ? SUM_MS : 1,
});

export const weightOf = (rows: Rows, row: number): number => rows.weights?.[row] ?? 1;

/** `shown`: without lines, and what is too rare to be seen in a flame graph is "(other)" of the function above. */
export type Precision = 'whole' | 'shown';

interface WindowReading {
  precision?: Precision;
  /** Of all samples those that are looked at: what is too rare to be seen is measured by them. */
  share?: number;
  /** Applied to each part as it is read. */
  transforms?: readonly Transform[];
  /** Gets to know each sample, before anything is folded. */
  leaves?: LeafSums;
}

/**
 * What happened in a time range: stacks with counts, and a timeline of `steps` equal steps. `isWhole`: nothing was folded while it
 * was read.
 */
export async function readWindow(
  store: PartStore,
  filter: SampleFilter,
  steps: number,
  { precision = 'whole', share = 1, transforms = [], leaves }: WindowReading = {},
): Promise<Window & { isWhole: boolean }> {
  let folding: FoldingParts | undefined;
  const visit = (part: StackCounts, { samples, partCount }: WindowSize): void => {
    const [transformed] = transformParts([part], transforms);
    leaves?.add(transformed!);
    folding ??= new FoldingParts(samples * share, partCount);
    folding.add(transformed!);
  };
  let isSummed = false;
  const visitSums = async ({ stacks, parts }: SumsRead, size: WindowSize): Promise<void> => {
    isSummed = true;
    const [transformed] = transformParts([stacks], transforms);
    folding ??= new FoldingParts(size.samples * share, size.partCount);
    folding.add(transformed!);
    if (leaves === undefined) return;
    const isExact =
      transforms.length === 0 && [...parts].every((part) => part.summed?.(filter)?.functions !== undefined);
    if (!isExact) leaves.add(transformed!);
    else for (const part of parts) await takeFunctions(part, filter, leaves);
  };
  // A transform may bring together what is rare, and a box that is looked at has figures of its own.
  const isExact = leaves !== undefined && (transforms.length > 0 || share < 1);
  const window = await visitWindow(store, filter, steps, visit, { precision, share, isExact, visitSums });
  return { ...window, parts: folding?.parts ?? [], isWhole: !isSummed && folding?.isFolding !== true };
}

/** What is known before the stacks are read. */
interface WindowSize {
  /** Events that pass the filter. */
  samples: number;
  /** Of the store. */
  partCount: number;
}

interface Reading {
  precision?: Precision;
  share?: number;
  /** Every stack is worth reading, where there are not too many. */
  isExact?: boolean;
  /** Takes what stores summed before. */
  visitSums?: (sums: SumsRead, size: WindowSize) => Promise<void>;
  /** Takes what it can of a part; true where its stacks are not needed then. */
  takeSums?: (part: SamplePart) => Promise<boolean>;
}

/** As {@link readWindow}, for what needs only one part's stacks at a time. */
export async function visitWindow(
  store: PartStore,
  filter: SampleFilter,
  steps: number,
  visit: (part: StackCounts, size: WindowSize) => void,
  { precision = 'whole', share = 1, isExact = false, takeSums, visitSums }: Reading = {},
): Promise<Omit<Window, 'parts'>> {
  const window = { samples: 0, allSamples: 0, cpuNanos: 0, cpus: 0, timeline: new Float64Array(steps) };
  const cpusByHost = new Map<string, Set<number>>();
  const found: { part: SamplePart; masks: RowMasks }[] = [];
  const parts = await partsOf(store, filter);
  for (const part of parts) {
    const masks = await compileMasks(filter.where, part);
    noteCpus(part, await part.rows(rowQuery(filter, EVERYTHING, ['group', 'cpu'])), window, cpusByHost);
    await addTimeline(part, filter, masks, window);
    found.push({ part, masks });
  }
  for (const seen of cpusByHost.values()) window.cpus += seen.size;
  const size = { samples: window.samples, partCount: found.length };
  if (isLevel(parts) || isSpread(parts, (filter.toMs - filter.fromMs) / steps)) {
    window.timeline.fill(0);
    await addSteps(store, filter, { steps, by: undefined }, () => window.timeline);
  }
  const summed = precision === 'shown' ? parts : [];
  const sums = await readSums(summed, filter, { samples: window.samples * share, isExact });
  if (sums !== undefined) await visitSums?.(sums, size);
  for (const { part, masks } of found) {
    if (sums?.parts.has(part) || (await takeSums?.(part))) continue;
    const counts = await countStacks(part, filter, masks);
    if (counts !== undefined) visit(counts, size);
  }
  return window;
}

function noteCpus(
  part: SamplePart,
  rows: Rows,
  window: Omit<Window, 'parts'>,
  cpusByHost: Map<string, Set<number>>,
): void {
  const byHost = part.groups.map(({ host }) => {
    const seen = cpusByHost.get(host) ?? new Set();
    cpusByHost.set(host, seen);
    return seen;
  });
  for (let row = 0; row < rows.length; row++) {
    window.allSamples += weightOf(rows, row);
    const cpu = rows.cpus![row]!;
    if (cpu >= 0 && cpu < MAX_CPUS) byHost[rows.groups![row]!]!.add(cpu);
  }
}

async function addTimeline(
  part: SamplePart,
  filter: SampleFilter,
  masks: RowMasks,
  window: Omit<Window, 'parts'>,
) {
  const { timeline } = window;
  const stepMs = (filter.toMs - filter.fromMs) / timeline.length;
  const rows = await part.rows(rowQuery(filter, masks, ['group', 'time'], stepMs));
  const shift = part.startMs - filter.fromMs;
  for (let row = 0; row < rows.length; row++) {
    const weight = weightOf(rows, row);
    window.samples += weight;
    window.cpuNanos += weight * part.groups[rows.groups![row]!]!.periodNanos;
    timeline[stepOf(rows.times![row]! + shift, stepMs, timeline.length)]! += weight;
  }
}

/** Times that were rounded to a step must not fall into the one before it. */
export const stepOf = (offsetMs: number, stepMs: number, steps: number): number =>
  Math.min(steps - 1, Math.max(0, Math.floor(offsetMs / stepMs + 1e-9)));

/** Undefined where no event passes the filter. */
async function countStacks(
  part: SamplePart,
  filter: SampleFilter,
  masks: RowMasks,
): Promise<StackCounts | undefined> {
  const rows = await part.rows(rowQuery(filter, masks, ['node']));
  if (rows.length === 0) return undefined;
  const stacks = await part.stacks();
  const selfCounts = new Float64Array(stacks.parents.length);
  for (let row = 0; row < rows.length; row++) selfCounts[rows.nodes![row]!]! += weightOf(rows, row);
  return { ...stacks, selfCounts };
}

/** How many samples of a type there are, and what they come to; of a level what was told last. */
export async function sumType(
  store: PartStore,
  filter: SampleFilter,
): Promise<{ samples: number; total: number }> {
  const sum = { samples: 0, total: 0 };
  for (const part of await partsOf(store, filter)) {
    const rows = await part.rows(rowQuery(filter, EVERYTHING, []));
    let total = 0;
    for (let row = 0; row < rows.length; row++) total += weightOf(rows, row);
    sum.total += total;
    sum.samples += isCpuType(part.type) ? total : await part.countSamples(filter);
  }
  return sum;
}

/** CPU time that the filtered events stand for. */
export async function sumCpuNanos(store: PartStore, filter: SampleFilter): Promise<number> {
  let nanos = 0;
  await sumGroups(store, filter, ({ periodNanos }, weight) => {
    nanos += periodNanos * weight;
  });
  return nanos;
}

export async function sumSeries(
  store: PartStore,
  filter: SampleFilter,
  add: (series: Series, weight: number) => void,
): Promise<void> {
  for (const part of await partsOf(store, filter)) {
    const rows = await part.rows(rowQuery(filter, await compileMasks(filter.where, part), ['series']));
    const table = await part.series();
    for (const [id, sum] of sumIds(rows.series!, rows, table.length)) add(table.at(id), sum);
  }
}

async function sumGroups(
  store: PartStore,
  filter: SampleFilter,
  add: (group: SeriesGroup, weight: number) => void,
): Promise<void> {
  for (const part of await partsOf(store, filter)) {
    const rows = await part.rows(rowQuery(filter, await compileMasks(filter.where, part), ['group']));
    for (const [id, sum] of sumIds(rows.groups!, rows, part.groups.length)) add(part.groups[id]!, sum);
  }
}

/** Those of which there are any. */
function* sumIds(ids: ArrayLike<number>, rows: Rows, length: number): Generator<[id: number, sum: number]> {
  const sums = new Float64Array(length);
  for (let row = 0; row < rows.length; row++) sums[ids[row]!]! += weightOf(rows, row);
  for (const [id, sum] of sums.entries()) if (sum > 0) yield [id, sum];
}

/** Labels that a timeline can be stacked by: an event has one value of them. */
export type TimelineLabel = SeriesLabel | AttributeLabel | 'cpu';

/** Whether all samples of a series have one value of the label. */
export const isSharedLabel = (key: string): key is SeriesLabel | AttributeLabel =>
  isSeriesLabel(key) || isAttributeLabel(key);

/** Names of the attributes that any of the samples have, in order. */
export async function readAttributeNames(store: PartStore, filter: SampleFilter): Promise<string[]> {
  const names = new Set<string>();
  await sumGroups(store, filter, ({ attributes }) => {
    for (const name of readAttributes(attributes).keys()) names.add(name);
  });
  return [...names].sort();
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
  if (isSharedLabel(key) && isGroupLabel(key)) {
    await sumGroups(store, filter, (group, weight) => add(groupValue(group, key), weight));
  } else if (isSharedLabel(key)) {
    await sumSeries(store, filter, (series, weight) => add(seriesValue(series, key), weight));
  } else {
    for (const part of await partsOf(store, filter)) await addNodeValues(part, filter, key, add);
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
  by: TimelineLabel | undefined,
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
  by: TimelineLabel | undefined,
  max: number,
): Promise<GroupedTimeline> {
  const values = by === undefined ? undefined : await readValues(store, filter, by);
  const other = new Float64Array(steps);
  const groups = new Map(
    (values ?? [{ value: '' }]).slice(0, max).map(({ value }) => [value, new Float64Array(steps)]),
  );
  await addSteps(store, filter, { steps, by }, (value) => groups.get(value) ?? other);
  const sum = (counts: Float64Array): number => counts.reduce((a, b) => a + b, 0);
  // Of a level what was told last is not the sum of the steps.
  const parts = await store.parts(filter);
  // and of what is spread the steps lack what was before them
  const isState = isLevel(parts) || isSpread(parts, (filter.toMs - filter.fromMs) / steps);
  const last = isState ? (values ?? (await readValues(store, filter, 'process'))) : [];
  const all = last.reduce((total, { samples }) => total + samples, 0);
  const lastOf = (wanted: string): number =>
    by === undefined ? all : (last.find(({ value }) => value === wanted)?.samples ?? 0);
  const named = [...groups]
    .map(([value, counts]) => {
      return { value, samples: isState ? lastOf(value) : sum(counts), counts: Array.from(counts) };
    })
    .filter(({ samples }) => samples > 0);
  return {
    samples: isState ? all : named.reduce((total, { samples }) => total + samples, sum(other)),
    groupCount: values?.length ?? named.length,
    groups: named,
    other: Array.from(other),
  };
}

interface Grouping {
  steps: number;
  by: TimelineLabel | undefined;
}

/** Adds each event to its step of the group of its label's value. */
async function addSteps(
  store: PartStore,
  filter: SampleFilter,
  { steps, by }: Grouping,
  groupOf: (value: string) => Float64Array,
): Promise<void> {
  const stepMs = (filter.toMs - filter.fromMs) / steps;
  const id = by === undefined || by === 'cpu' ? by : isGroupLabel(by) ? 'group' : 'series';
  let parts = await store.parts(filter);
  if (isLevel(parts)) {
    const reader = async (part: SamplePart) => {
      const describe = await valueReader(part, by);
      return (value: number) => groupOf(describe(value));
    };
    await addLevelSteps(parts, filter, { steps, id, groupOf: reader });
    return;
  }
  const isOver = isSpread(parts, stepMs);
  const range = isOver ? withLate(filter) : filter;
  if (isOver) parts = await store.parts(range);
  for (const part of parts) {
    const masks = await compileMasks(filter.where, part);
    const columns: Column[] = id === undefined ? ['time'] : [id, 'time'];
    // waits of two threads are not one of twice the length
    if (isOver && id !== 'series') columns.push('series');
    const rows = await part.rows(rowQuery(range, masks, columns, isOver ? 1 : stepMs));
    const ids = { cpu: rows.cpus, group: rows.groups, series: rows.series };
    const describe = await valueReader(part, by);
    const known = new Map<number, Float64Array>();
    const shift = part.startMs - filter.fromMs;
    for (let row = 0; row < rows.length; row++) {
      const value = id === undefined ? 0 : ids[id]![row]!;
      let group = known.get(value);
      if (group === undefined) {
        group = groupOf(describe(value));
        known.set(value, group);
      }
      const atMs = rows.times![row]! + shift;
      if (isOver) spread(group, atMs, weightOf(rows, row), stepMs);
      else group[stepOf(atMs, stepMs, steps)]! += weightOf(rows, row);
    }
  }
}

/** What a label says of a CPU, a group or a series. */
async function valueReader(part: SamplePart, by: Grouping['by']): Promise<(id: number) => string> {
  if (by === undefined) return () => '';
  if (by === 'cpu') return String;
  if (isGroupLabel(by)) return (id) => groupValue(part.groups[id]!, by);
  const table = await part.series();
  return (id) => seriesValue(table.at(id), by);
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
