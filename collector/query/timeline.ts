/** Events over time, in equal steps. */
import {
  type AttributeLabel,
  isLinkLabel,
  type LinkLabel,
  type SeriesLabel,
} from '../../common/profile/filters/filter.ts';
import { isCpuType } from '../../common/profile/model/profile-type.ts';
import { compileMasks, groupValue, isGroupLabel, seriesValue } from '../store/matcher.ts';
import type { Column, SampleFilter, SamplePart } from '../store/store.ts';
import { addLevelSteps, isLevel } from './levels.ts';
import { type PartStore, rowQuery, stepOf, weightOf } from './rows.ts';
import { isSpread, spread, withLate } from './spread.ts';
import { readValues } from './values.ts';

/** Labels that a timeline can be stacked by: an event has one value of them. */
export type TimelineLabel = SeriesLabel | AttributeLabel | LinkLabel | 'cpu';

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

/** CPU time of each step that events stand for, each by the rate at which it was sampled. */
export async function readStepNanos(
  store: PartStore,
  filter: SampleFilter,
  steps: number,
): Promise<Float64Array> {
  const nanos = new Float64Array(steps);
  const stepMs = (filter.toMs - filter.fromMs) / steps;
  for (const part of await store.parts(filter)) {
    if (!isCpuType(part.type)) continue;
    const masks = await compileMasks(filter.where, part);
    const [period = 0, ...others] = new Set(part.groups.map(({ periodNanos }) => periodNanos));
    // by group and time are many more rows, and most parts have one rate
    const by: Column[] = others.length > 0 ? ['group', 'time'] : ['time'];
    const rows = await part.rows(rowQuery(filter, masks, by, stepMs));
    const shift = part.startMs - filter.fromMs;
    for (let row = 0; row < rows.length; row++) {
      const nanosEach = rows.groups ? part.groups[rows.groups[row]!]!.periodNanos : period;
      nanos[stepOf(rows.times![row]! + shift, stepMs, steps)]! += weightOf(rows, row) * nanosEach;
    }
  }
  return nanos;
}

interface Grouping {
  steps: number;
  by: TimelineLabel | undefined;
}

/** The steps of a label's value. */
type GroupOf = (value: string) => Float64Array;

/** Adds each event to its step of the group of its label's value. */
export async function addSteps(
  store: PartStore,
  filter: SampleFilter,
  grouping: Grouping,
  groupOf: GroupOf,
): Promise<void> {
  const { steps, by } = grouping;
  const parts = await store.parts(filter);
  if (isLevel(parts)) {
    const reader = async (part: SamplePart) => {
      const describe = await valueReader(part, by);
      return (value: number) => groupOf(describe(value));
    };
    await addLevelSteps(parts, filter, { steps, id: idOf(by), groupOf: reader });
    return;
  }
  const isOver = isSpread(parts, (filter.toMs - filter.fromMs) / steps);
  for (const part of isOver ? await store.parts(withLate(filter)) : parts)
    await addPart(part, filter, { ...grouping, isOver }, groupOf);
}

function idOf(by: Grouping['by']): 'cpu' | 'link' | 'group' | 'series' | undefined {
  if (by === undefined || by === 'cpu') return by;
  if (isLinkLabel(by)) return 'link';
  return isGroupLabel(by) ? 'group' : 'series';
}

/** `isOver`: values are time that is spread over the steps before. */
async function addPart(
  part: SamplePart,
  filter: SampleFilter,
  { steps, by, isOver }: Grouping & { isOver: boolean },
  groupOf: GroupOf,
): Promise<void> {
  const stepMs = (filter.toMs - filter.fromMs) / steps;
  const id = idOf(by);
  const columns: Column[] = id === undefined ? ['time'] : [id, 'time'];
  // waits of two threads are not one of twice the length
  if (isOver && id !== 'series') columns.push('series');
  const range = isOver ? withLate(filter) : filter;
  const masks = await compileMasks(filter.where, part);
  const rows = await part.rows(rowQuery(range, masks, columns, isOver ? 1 : stepMs));
  const ids = { cpu: rows.cpus, link: rows.links, group: rows.groups, series: rows.series };
  const describe = await valueReader(part, by);
  const known = new Map<number, Float64Array>();
  const shift = part.startMs - filter.fromMs;
  for (let row = 0; row < rows.length; row++) {
    const value = id === undefined ? 0 : (ids[id]?.[row] ?? 0);
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

/** What a label says of a CPU, a link, a group or a series. */
async function valueReader(part: SamplePart, by: Grouping['by']): Promise<(id: number) => string> {
  if (by === undefined) return () => '';
  if (by === 'cpu') return String;
  if (isLinkLabel(by)) {
    const links = await part.links();
    return (id) => links.value(id, by);
  }
  if (isGroupLabel(by)) return (id) => groupValue(part.groups[id]!, by);
  const table = await part.series();
  return (id) => seriesValue(table.at(id), by);
}
