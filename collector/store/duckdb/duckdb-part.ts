/** A part in the DuckDB file as queries see it: columns come as typed arrays, and are summed here. */

import type { FrameKind } from '../../../common/flame/frame-kind.ts';
import { isCpuType } from '../../../common/profile/model/profile-type.ts';
import {
  type DictionaryCache,
  PART_MS,
  type PartDictionaries,
  type PartInfo,
} from '../database/database-part.ts';
import { linklessRows } from '../linkless.ts';
import { NO_LINKS, PartLinks } from '../part-links.ts';
import { type Range, type SumChunk, selectSums, splitBySums } from '../part-sums.ts';
import { roundTimes } from '../round-times.ts';
import { RowCollector } from '../row-collector.ts';
import { rowsByGroup } from '../rows-by-group.ts';
import type { SeriesGroup } from '../series.ts';
import { type SeriesColumns, SeriesTable } from '../series-table.ts';
import type {
  Column,
  Frame,
  RowQuery,
  Rows,
  SamplePart,
  StackCounts,
  Stacks,
  SummedStacks,
  TimeRange,
} from '../store.ts';
import { countable } from '../stored-type.ts';
import { numbersOf, type Scan, textsOf } from './duckdb-columns.ts';
import type { DuckDbTrees } from './duckdb-trees.ts';

/** Entries of the dictionaries are found in the file by id; ids count from 0. */
interface Counts {
  frames: number;
  nodes: number;
  series: number;
}

interface SummedDictionaries extends PartDictionaries {
  sums(): Promise<SumChunk[]>;
}

/** The dictionaries of a part that this process writes; its sums are read anew each time. */
export function openDictionaries(part: PartDictionaries, { id }: PartInfo, scan: Scan): SummedDictionaries {
  const { groups } = part;
  return {
    groups,
    series: () => part.series(),
    stacks: () => part.stacks(),
    links: () => part.links(),
    sums: () => readSums(id, scan),
  };
}

/** The dictionaries of a part that this process does not write. */
export async function loadDictionaries(
  { id }: PartInfo,
  scan: Scan,
  cache: DictionaryCache,
): Promise<SummedDictionaries> {
  const { groups } = await cache.get(`groups ${id}`, async () => {
    const value = { groups: await readGroups(id, scan) };
    return { value, bytes: 500 * value.groups.length };
  });
  const count = (): Promise<Counts> => readCounts(id, scan);
  return {
    groups,
    series: () =>
      cache.get(`series ${id}`, async () => {
        const value = await readSeries(id, scan, groups, (await count()).series);
        return { value, bytes: value.bytes };
      }),
    stacks: () =>
      cache.get(`stacks ${id}`, async () => {
        const value = await readStacks(id, scan, cache.frames, await count());
        return { value, bytes: 8 * value.frames.length + 8 * value.parents.length };
      }),
    links: () =>
      cache.get(`links ${id}`, async () => {
        const value = await readLinks(id, scan);
        return { value, bytes: value.bytes };
      }),
    sums: () =>
      cache.get(`sums ${id}`, async () => {
        const value = await readSums(id, scan);
        return { value, bytes: value.reduce((sum, { tens }) => sum + 16 * tens.length, 0) };
      }),
  };
}

async function readLinks(id: number, scan: Scan): Promise<PartLinks> {
  const links = new PartLinks();
  await scan(`SELECT id, trace_high, trace_low, span FROM links_${id}`, (chunk) => {
    const ids = numbersOf(chunk, 0);
    const [highs, lows, spans] = [1, 2, 3].map((column) => numbersOf(chunk, column) as BigUint64Array);
    for (let row = 0; row < chunk.rowCount; row++)
      links.put(Number(ids[row]), highs![row]!, lows![row]!, spans![row]!);
  });
  return links;
}

async function readSums(id: number, scan: Scan): Promise<SumChunk[]> {
  const chunks: SumChunk[] = [];
  await scan(`SELECT tens, grp, cpu, weight FROM sums_${id}`, (chunk) => {
    const [tens, groups, cpus, weights] = [0, 1, 2, 3].map((column) => numbersOf(chunk, column).slice());
    chunks.push({ tens, groups, cpus, weights } as SumChunk);
  });
  return chunks;
}

async function readCounts(id: number, scan: Scan): Promise<Counts> {
  let counts = { frames: 0, nodes: 0, series: 0 };
  const next = (table: string): string => `(SELECT coalesce(max(id) + 1, 0) FROM ${table}_${id})::DOUBLE`;
  await scan(`SELECT ${next('frames')}, ${next('nodes')}, ${next('series')}`, (chunk) => {
    const [frames = 0, nodes = 0, series = 0] = [0, 1, 2].map((column) =>
      Number(numbersOf(chunk, column)[0]),
    );
    counts = { frames, nodes: Math.max(1, nodes), series };
  });
  return counts;
}

async function readGroups(id: number, scan: Scan): Promise<SeriesGroup[]> {
  const groups: SeriesGroup[] = [];
  const columns =
    'process, thread, path, command, container_id, cgroup, service, host, attributes, period_nanos, id';
  await scan(`SELECT ${columns} FROM groups_${id}`, (chunk) => {
    const texts = [0, 1, 2, 3, 4, 5, 6, 7, 8].map((column) => textsOf(chunk, column));
    const [periods, ids] = [numbersOf(chunk, 9), numbersOf(chunk, 10)];
    for (let row = 0; row < chunk.rowCount; row++) {
      const [process, thread, path, command, containerId, cgroup, service, host, attributes] = texts.map(
        (text) => text(row),
      );
      groups[Number(ids[row])] = {
        process: process!,
        thread: thread!,
        path: path!,
        command: command!,
        containerId: containerId!,
        cgroup: cgroup!,
        service: service!,
        host: host!,
        attributes: attributes!,
        periodNanos: Number(periods[row]),
      };
    }
  });
  return groups;
}

async function readSeries(
  id: number,
  scan: Scan,
  groups: readonly SeriesGroup[],
  length: number,
): Promise<SeriesTable> {
  const columns: SeriesColumns = {
    groups: new Uint32Array(length),
    pids: new Float64Array(length),
    tids: new Float64Array(length),
    startsUnixNano: new BigUint64Array(length),
  };
  await scan(`SELECT id, grp, pid, tid, start_unix_nano FROM series_${id}`, (chunk) => {
    const [ids, ofGroups, pids, tids, starts] = [0, 1, 2, 3, 4].map((column) => numbersOf(chunk, column));
    for (let row = 0; row < chunk.rowCount; row++) {
      const series = Number(ids![row]);
      columns.groups[series] = Number(ofGroups![row]);
      columns.pids[series] = Number(pids![row]);
      columns.tids[series] = Number(tids![row]);
      columns.startsUnixNano[series] = BigInt(starts![row]!);
    }
  });
  return new SeriesTable(groups, columns, length);
}

async function readStacks(
  id: number,
  scan: Scan,
  pool: DictionaryCache['frames'],
  counts: Counts,
): Promise<Stacks> {
  const frames = await readFrames(id, scan, pool, counts.frames);
  const parents = new Uint32Array(counts.nodes);
  const nodeFrames = new Uint32Array(counts.nodes);
  await scan(`SELECT id, parent, frame FROM nodes_${id}`, (chunk) => {
    const [ids, ofParents, ofFrames] = [0, 1, 2].map((column) => numbersOf(chunk, column) as Uint32Array);
    for (let row = 0; row < ids!.length; row++) {
      const node = ids![row]!;
      if (ofParents![row]! >= node || frames[ofFrames![row]!] === undefined) throw damaged('nodes', id);
      parents[node] = ofParents![row]!;
      nodeFrames[node] = ofFrames![row]!;
    }
  });
  return { frames, parents, nodeFrames };
}

async function readFrames(
  id: number,
  scan: Scan,
  pool: DictionaryCache['frames'],
  length: number,
): Promise<Frame[]> {
  const places: Omit<Frame, 'name'>[] = [];
  await scan(`SELECT file, mapping, kind, "binary", id FROM places_${id}`, (chunk) => {
    const [file, mapping, kind, binary] = [0, 1, 2, 3].map((column) => textsOf(chunk, column));
    const ids = numbersOf(chunk, 4);
    for (let row = 0; row < chunk.rowCount; row++) {
      const shared = { file: file!(row), mapping: mapping!(row), kind: kind!(row) as FrameKind };
      places[Number(ids[row])] = { ...shared, binary: binary!(row) };
    }
  });
  const frames = new Array<Frame>(length);
  await scan(`SELECT name, id, place, line FROM frames_${id}`, (chunk) => {
    const name = textsOf(chunk, 0);
    const [ids, ofPlaces, lines] = [1, 2, 3].map((column) => numbersOf(chunk, column));
    for (let row = 0; row < chunk.rowCount; row++) {
      const place = places[Number(ofPlaces![row])];
      if (place === undefined) throw damaged('frames', id);
      const { file, mapping, kind, binary = '' } = place;
      const line = Number(lines![row]);
      frames[Number(ids![row])] = pool.share({ name: name(row), file, mapping, kind, binary, line });
    }
  });
  return frames;
}

const damaged = (table: string, id: number): Error =>
  new Error(`Corrupt table ${table}_${id}: it refers to what is not there`);

/** Every stack of a part with its events; frames and nodes are not kept in the cache. */
export async function readAllStacks(
  { id }: PartInfo,
  scan: Scan,
  cache: DictionaryCache,
): Promise<StackCounts> {
  const stacks = await readStacks(id, scan, cache.frames, await readCounts(id, scan));
  const selfCounts = new Float64Array(stacks.parents.length);
  await scan(`SELECT node, weight FROM samples_${id}`, (chunk) => {
    const [nodes, weights] = [numbersOf(chunk, 0), numbersOf(chunk, 1) as Float64Array];
    for (let row = 0; row < weights.length; row++) selfCounts[Number(nodes[row])]! += weights[row]!;
  });
  return { ...stacks, selfCounts };
}

const SQL_COLUMNS = { time: 't', node: 'node', series: 'series', cpu: 'cpu', link: 'link' } as const;

export class DuckDbPart implements SamplePart {
  readonly type: SamplePart['type'];
  readonly startMs: number;
  readonly endMs: number;
  readonly groups: SamplePart['groups'];
  readonly #info: PartInfo;
  readonly #dictionaries: SummedDictionaries;
  readonly #scan: Scan;
  readonly #trees: DuckDbTrees;

  constructor(info: PartInfo, dictionaries: SummedDictionaries, scan: Scan, trees: DuckDbTrees) {
    this.#info = info;
    this.#trees = trees;
    this.type = info.type;
    this.startMs = info.startMs;
    this.endMs = info.startMs + PART_MS;
    this.groups = dictionaries.groups;
    this.#dictionaries = dictionaries;
    this.#scan = scan;
  }

  series(): Promise<SeriesTable> {
    return this.#dictionaries.series();
  }

  stacks(): Promise<Stacks> {
    return this.#dictionaries.stacks();
  }

  async countSamples(range: TimeRange): Promise<number> {
    if (this.isWithin(range)) return this.#info.samples;
    const { startMs, id, type } = this.#info;
    const count = isCpuType(type) ? 'coalesce(sum(weight), 0)' : 'count(*)';
    const where = `t >= ${range.fromMs - startMs} AND t < ${range.toMs - startMs}`;
    let samples = 0;
    await this.#scan(`SELECT (${count})::DOUBLE FROM samples_${id} WHERE ${where}`, (chunk) => {
      samples += Number(numbersOf(chunk, 0)[0] ?? 0);
    });
    return samples;
  }

  isWithin({ fromMs, toMs }: TimeRange): boolean {
    return fromMs <= this.#info.minMs && toMs > this.#info.maxMs;
  }

  summed(range: TimeRange): SummedStacks | undefined {
    const { id } = this.#info;
    const info = this.#trees.find(id);
    if (info === undefined || !this.isWithin(range)) return undefined;
    return {
      nodes: info.nodes,
      read: (minimum) => this.#trees.read(id, minimum, this.#scan),
      ...(info.hasFunctions && { functions: () => this.#trees.readFunctions(id, this.#scan) }),
    };
  }

  async links(): Promise<PartLinks> {
    return this.#info.hasLinks ? this.#dictionaries.links() : NO_LINKS;
  }

  rows(query: RowQuery): Promise<Rows> {
    const read = (wanted: RowQuery): Promise<Rows> => this.#rows(countable(wanted, this.type));
    return this.#info.hasLinks ? read(query) : linklessRows(query, read);
  }

  async #rows(query: RowQuery): Promise<Rows> {
    const split = splitBySums(this.startMs, query);
    const read = (within?: readonly Range[]): Promise<Rows> =>
      rowsByGroup(this, query, async (bySeries) =>
        roundTimes(await this.#readSamples(bySeries, within), query),
      );
    if (split === undefined) return read();
    const whole = selectSums(await this.#dictionaries.sums(), query, split.isWhole);
    return split.cut.length === 0 ? whole : concatRows(whole, await read(split.cut));
  }

  /** @param within only these milliseconds since the part's start */
  async #readSamples(query: RowQuery, within?: readonly Range[]): Promise<Rows> {
    const { startMs, minMs, maxMs, id } = this.#info;
    const conditions: string[] = [];
    if (query.fromMs > minMs) conditions.push(`t >= ${query.fromMs - startMs}`);
    if (query.toMs <= maxMs) conditions.push(`t < ${query.toMs - startMs}`);
    const ranges = within?.map(([from, to]) => `t >= ${from} AND t < ${to}`);
    if (ranges !== undefined) conditions.push(`(${ranges.join(' OR ')})`);
    const collector = new RowCollector(query);
    const columns = collector.columns.map((column: Exclude<Column, 'group'>) => SQL_COLUMNS[column]);
    const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`;
    await this.#scan(
      `SELECT ${[query.counts ? '1::DOUBLE' : 'weight', ...columns].join()} FROM samples_${id} ${where}`,
      (chunk) =>
        collector.add(
          numbersOf(chunk, 0) as Float64Array,
          columns.map((_, i) => numbersOf(chunk, i + 1) as Uint32Array | Int16Array),
        ),
    );
    return collector.rows();
  }
}

/** Concatenates rows of the same query. */
function concatRows(a: Rows, b: Rows): Rows {
  const join = (one: ArrayLike<number> | undefined, two: ArrayLike<number> | undefined) => {
    if (one === undefined || two === undefined) return undefined;
    const both = new Float64Array(a.length + b.length);
    both.set(one);
    both.set(two, a.length);
    return both;
  };
  return {
    length: a.length + b.length,
    times: join(a.times, b.times),
    groups: join(a.groups, b.groups),
    cpus: join(a.cpus, b.cpus),
    weights: join(a.weights, b.weights),
    nodes: undefined,
    series: undefined,
    links: undefined,
  };
}
