/**
 * Samples of a level are the state at a time, such as the bytes in use: those of two times are not added up. What is shown of a
 * stretch of time is the last that each process told, and a timeline goes from each of its values to the next.
 */

import { valueKind } from '../../common/profile/model/profile-type.ts';
import { compileMasks, EVERYTHING, type RowMasks } from '../store/matcher.ts';
import { PartView } from '../store/part-view.ts';
import type { Series } from '../store/series.ts';
import type { SeriesTable } from '../store/series-table.ts';
import type { Column, RowQuery, Rows, SampleFilter, SamplePart, TimeRange } from '../store/store.ts';
import type { PartStore } from './rows.ts';

/** The parts of a filter's time and type; of a level each has only what its processes told last. */
export async function partsOf(store: PartStore, filter: SampleFilter): Promise<SamplePart[]> {
  const parts = await store.parts(filter);
  if (!isLevel(parts)) return parts;
  const last = new LastTimes(parts, filter);
  return parts.map((part) => new LevelPart(part, last));
}

/** @param parts of one type */
export const isLevel = ([part]: readonly SamplePart[]): boolean =>
  part !== undefined && valueKind(part.type) === 'level';

/** What sets levels of one time apart: a process, or whoever sends for one. */
const sourceOf = (series: Series): string => {
  const { host, process, path, service, containerId, attributes, pid, startUnixNano } = series;
  return [host, process, path, service, containerId, attributes, pid, startUnixNano].join('\0');
};

const exactQuery = ({ fromMs, toMs }: TimeRange, masks: RowMasks, by: readonly Column[]): RowQuery => {
  return { fromMs, toMs, ...masks, by, stepMs: 1, resolutionMs: 1 };
};

/** Keys of the sources of a part, by series. */
function sourceReader(table: SeriesTable): (series: number) => string {
  const known: string[] = [];
  return (series) => {
    known[series] ??= sourceOf(table.at(series));
    return known[series]!;
  };
}

/** When each source told something last, within a stretch of time. */
class LastTimes {
  readonly #parts: readonly SamplePart[];
  readonly #range: TimeRange;
  #times: Promise<ReadonlyMap<string, number>> | undefined;

  constructor(parts: readonly SamplePart[], range: TimeRange) {
    this.#parts = parts;
    this.#range = range;
  }

  /** By source: milliseconds since the Unix epoch. */
  read(): Promise<ReadonlyMap<string, number>> {
    this.#times ??= this.#find();
    return this.#times;
  }

  async #find(): Promise<Map<string, number>> {
    const times = new Map<string, number>();
    for (const part of this.#parts) {
      const rows = await part.rows(exactQuery(this.#range, EVERYTHING, ['series', 'time']));
      const sourceAt = sourceReader(await part.series());
      for (let row = 0; row < rows.length; row++) {
        const source = sourceAt(rows.series![row]!);
        const timeMs = part.startMs + rows.times![row]!;
        if (timeMs > (times.get(source) ?? 0)) times.set(source, timeMs);
      }
    }
    return times;
  }
}

/** Of a part those rows that are the last of their source. */
class LevelPart extends PartView {
  readonly #last: LastTimes;

  constructor(part: SamplePart, last: LastTimes) {
    super(part);
    this.#last = last;
  }

  override async rows(query: RowQuery): Promise<Rows> {
    const by = [...new Set<Column>([...query.by, 'series', 'time'])];
    const rows = await this.part.rows(exactQuery(query, query, by));
    const last = await this.#last.read();
    const sourceAt = sourceReader(await this.part.series());
    const { startMs } = this.part;
    const kept: number[] = [];
    for (let row = 0; row < rows.length; row++)
      if (startMs + rows.times![row]! === last.get(sourceAt(rows.series![row]!))) kept.push(row);
    const pick = (column: ArrayLike<number> | undefined) =>
      column && Float64Array.from(kept, (row) => column[row]!);
    return {
      length: kept.length,
      times: pick(rows.times),
      nodes: pick(rows.nodes),
      series: pick(rows.series),
      groups: pick(rows.groups),
      cpus: pick(rows.cpus),
      links: pick(rows.links),
      weights: pick(rows.weights),
    };
  }
}

/** Of one source at one time: its value in each group of a timeline. */
type Snapshot = Map<Float64Array, number>;

interface LevelSteps {
  steps: number;
  /** Which timeline a row belongs to, by its id in the part. */
  id: 'cpu' | 'link' | 'group' | 'series' | undefined;
  groupOf: (part: SamplePart) => Promise<(id: number) => Float64Array>;
}

/** Adds to timelines what held at the end of each step: a value holds until its source shows the next. */
export async function addLevelSteps(
  parts: readonly SamplePart[],
  filter: SampleFilter,
  { steps, id, groupOf }: LevelSteps,
): Promise<void> {
  const stepMs = (filter.toMs - filter.fromMs) / steps;
  const sources = new Map<string, Map<number, Snapshot>>();
  for (const part of parts) {
    const masks = await compileMasks(filter.where, part);
    const by: Column[] = ['series', 'time', ...(id === undefined || id === 'series' ? [] : [id])];
    const rows = await part.rows(exactQuery(filter, masks, by));
    const groupAt = await groupOf(part);
    const sourceAt = sourceReader(await part.series());
    const ids = id && { cpu: rows.cpus, link: rows.links, group: rows.groups, series: rows.series }[id];
    for (let row = 0; row < rows.length; row++) {
      const source = sourceAt(rows.series![row]!);
      const snapshots = sources.get(source) ?? new Map<number, Snapshot>();
      sources.set(source, snapshots);
      const timeMs = part.startMs + rows.times![row]!;
      const snapshot = snapshots.get(timeMs) ?? new Map();
      snapshots.set(timeMs, snapshot);
      const group = groupAt(ids === undefined ? 0 : ids[row]!);
      snapshot.set(group, (snapshot.get(group) ?? 0) + (rows.weights?.[row] ?? 1));
    }
  }
  for (const snapshots of sources.values()) addSource(snapshots, { fromMs: filter.fromMs, stepMs, steps });
}

function addSource(
  snapshots: ReadonlyMap<number, Snapshot>,
  { fromMs, stepMs, steps }: { fromMs: number; stepMs: number; steps: number },
): void {
  const times = [...snapshots.keys()].sort((a, b) => a - b);
  const stepAt = (timeMs: number): number =>
    Math.min(steps, Math.max(0, Math.floor((timeMs - fromMs) / stepMs + 1e-9)));
  for (const [i, timeMs] of times.entries()) {
    const first = Math.min(steps - 1, stepAt(timeMs));
    // Who does not come any more ended: behind its usual time nothing is known of it.
    const next = times[i + 1] ?? timeMs + (i === 0 ? 0 : timeMs - times[i - 1]!);
    const end = i + 1 < times.length ? stepAt(next) : Math.max(first + 1, stepAt(next) + 1);
    for (const [group, value] of snapshots.get(timeMs)!)
      for (let step = first; step < Math.min(end, steps); step++) group[step]! += value;
  }
}
