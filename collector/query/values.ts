/** Sums over whole time ranges: of a type, of its series, and by the values of a label. */
import {
  type AttributeLabel,
  isAttributeLabel,
  isLinkLabel,
  isSeriesLabel,
  LINK_LABELS,
  type LinkLabel,
  type SeriesLabel,
} from '../../common/profile/filters/filter.ts';
import { readAttributes } from '../../common/profile/model/attributes.ts';
import { isCpuType } from '../../common/profile/model/profile-type.ts';
import { compileMasks, groupValue, isGroupLabel, seriesValue } from '../store/matcher.ts';
import type { Series, SeriesGroup } from '../store/series.ts';
import type { Rows, SampleFilter, SamplePart } from '../store/store.ts';
import { partsOf } from './levels.ts';
import { type PartStore, rowQuery, weightOf } from './rows.ts';

/** How many samples of a type there are, and what they come to; of a level what was told last. */
export async function sumType(
  store: PartStore,
  filter: SampleFilter,
): Promise<{ samples: number; total: number }> {
  const sum = { samples: 0, total: 0 };
  for (const part of await partsOf(store, filter)) {
    const query = rowQuery(filter, await compileMasks(filter.where, part), []);
    const total = sumWeights(await part.rows(query));
    sum.total += total;
    if (isCpuType(part.type)) sum.samples += total;
    else if (filter.where.length === 0) sum.samples += await part.countSamples(filter);
  }
  if (filter.where.length === 0 || sum.samples > 0) return sum;
  // of a level too, all of its values
  for (const part of await store.parts(filter)) {
    const query = rowQuery(filter, await compileMasks(filter.where, part), []);
    sum.samples += sumWeights(await part.rows({ ...query, counts: true }));
  }
  return sum;
}

function sumWeights(rows: Rows): number {
  let sum = 0;
  for (let row = 0; row < rows.length; row++) sum += weightOf(rows, row);
  return sum;
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

async function sumLinks(
  store: PartStore,
  filter: SampleFilter,
  label: LinkLabel,
  add: (value: string, weight: number) => void,
): Promise<void> {
  for (const part of await partsOf(store, filter)) {
    const rows = await part.rows(rowQuery(filter, await compileMasks(filter.where, part), ['link']));
    const links = await part.links();
    const ids = rows.links ?? new Uint8Array(rows.length);
    for (const [id, sum] of sumIds(ids, rows, links.length)) add(links.value(id, label), sum);
  }
}

/** Those of which there are any. */
function* sumIds(ids: ArrayLike<number>, rows: Rows, length: number): Generator<[id: number, sum: number]> {
  const sums = new Float64Array(length);
  for (let row = 0; row < rows.length; row++) sums[ids[row]!]! += weightOf(rows, row);
  for (const [id, sum] of sums.entries()) if (sum > 0) yield [id, sum];
}

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

/** Labels of the IDs that any of the samples are linked to. */
export async function readLinkLabels(store: PartStore, filter: SampleFilter): Promise<LinkLabel[]> {
  const found = new Set<LinkLabel>();
  for (const part of await partsOf(store, filter)) {
    const links = await part.links();
    if (links.length === 1) continue;
    const rows = await part.rows(rowQuery(filter, await compileMasks(filter.where, part), ['link']));
    const ids = rows.links ?? [];
    for (const label of LINK_LABELS)
      for (let row = 0; row < ids.length && !found.has(label); row++)
        if (links.value(ids[row]!, label) !== '') found.add(label);
    if (found.size === LINK_LABELS.length) break;
  }
  return LINK_LABELS.filter((label) => found.has(label));
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
  } else if (isLinkLabel(key)) {
    await sumLinks(store, filter, key, add);
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
