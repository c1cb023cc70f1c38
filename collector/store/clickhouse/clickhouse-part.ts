import type { FrameKind } from '../../../common/flame/frame-kind.ts';
import { isCpuType } from '../../../common/profile/model/profile-type.ts';
import {
  type DictionaryCache,
  PART_MS,
  type PartDictionaries,
  type PartInfo,
} from '../database/database-part.ts';
import { EMPTY_ROWS, linklessRows } from '../linkless.ts';
import { NO_LINKS, PartLinks } from '../part-links.ts';
import { rowsByGroup } from '../rows-by-group.ts';
import type { SeriesGroup } from '../series.ts';
import { SeriesTable } from '../series-table.ts';
import type { Frame, RowQuery, Rows, SamplePart, Stacks, TimeRange } from '../store.ts';
import { countable } from '../stored-type.ts';
import type { Columns } from './clickhouse-reader.ts';
import { type GroupKeys, readRows, rowsSql } from './clickhouse-rows.ts';

const PAGE_ROWS = 32_768;
const GROUP_COLUMNS =
  'process, thread, path, command, container_id, cgroup, service, host, attributes, period_nanos';
const MAX_SEEDS = 16;
const FRAME_COLUMNS = 'name, file, mapping, kind, "binary", line';

/** Reads dictionaries of parts that this process does not write. */
export interface DictionarySource {
  /** Another one's is another; it changes when the dictionaries may have grown. */
  key: string;
  /** Entries in the order of their ids; given `ids`, those from the first to before the second. */
  read(
    columns: string,
    table: 'frames' | 'nodes' | 'series' | 'links',
    ids?: readonly [number, number],
  ): Promise<Columns>;
  /** Sets of values that series have in these columns, each once, behind its key. */
  readGroups(key: string, columns: string): Promise<Columns>;
}

interface PartGroups {
  groups: readonly SeriesGroup[];
  keys: GroupKeys;
  bytes: number;
}

export async function loadDictionaries(
  source: DictionarySource,
  cache: DictionaryCache,
): Promise<PartDictionaries & { groupKeys: GroupKeys }> {
  const groups = await cache.get(`groups ${source.key}`, async () => {
    const value = await loadGroups(source);
    return { value, bytes: value.bytes };
  });
  return {
    groups: groups.groups,
    groupKeys: groups.keys,
    series: () =>
      cache.get(`series ${source.key}`, async () => {
        const value = await loadSeries(source, groups);
        return { value, bytes: value.bytes };
      }),
    links: () =>
      cache.get(`links ${source.key}`, async () => {
        const value = await loadLinks(source);
        return { value, bytes: value.bytes };
      }),
    stacks: () => cache.get(`stacks ${source.key}`, () => loadStacks(source, cache.frames)),
  };
}

async function loadStacks(
  source: DictionarySource,
  pool: DictionaryCache['frames'],
): Promise<{ value: Stacks; bytes: number }> {
  const frames: Frame[] = [];
  for await (const page of readPages(source, FRAME_COLUMNS, 'frames')) {
    const [names = [], files = [], mappings = [], kinds = [], binaries = [], lines = []] = page;
    for (const [i, name] of names.entries()) {
      const [file, mapping, binary] = [String(files[i]), String(mappings[i]), String(binaries[i])];
      const kind = String(kinds[i]) as FrameKind;
      frames.push(pool.share({ name: String(name), file, mapping, kind, binary, line: Number(lines[i]) }));
    }
  }
  const parents = [Uint32Array.of(0)];
  const nodeFrames = [Uint32Array.of(0)];
  for await (const [parent = [], frame = []] of readPages(source, 'parent, frame', 'nodes')) {
    parents.push(Uint32Array.from(parent as number[]));
    nodeFrames.push(Uint32Array.from(frame as number[]));
  }
  const value: Stacks = { frames, parents: concat(parents), nodeFrames: concat(nodeFrames) };
  return { value, bytes: 8 * frames.length + 8 * value.parents.length };
}

async function loadLinks(source: DictionarySource): Promise<PartLinks> {
  const links = new PartLinks();
  for await (const [traceIds = [], spanIds = []] of readPages(source, 'trace_id, span_id', 'links'))
    for (const [i, traceId] of traceIds.entries())
      links.append({ traceId: String(traceId), spanId: String(spanIds[i]) });
  return links;
}

/** An answer is objects of JavaScript until it is copied: a whole part's would take hundreds of MiB for a moment. */
async function* readPages(
  { read }: DictionarySource,
  columns: string,
  table: 'frames' | 'nodes' | 'links',
): AsyncGenerator<Columns> {
  for (let from = 0; ; from += PAGE_ROWS) {
    const page = await read(columns, table, [from, from + PAGE_ROWS]);
    yield page;
    // node 0, the root, and link 0, none, are in no table
    if ((page[0]?.length ?? 0) < PAGE_ROWS - 1) return;
  }
}

function concat(pages: readonly Uint32Array[]): Uint32Array {
  const all = new Uint32Array(pages.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const page of pages) {
    all.set(page, at);
    at += page.length;
  }
  return all;
}

/**
 * What series share, without the series: of a part with many hosts there are dozens of these for each. The server knows a group by
 * a number of 32 bits, a hash of its values; where two groups of a part have the same, another hash is tried.
 */
async function loadGroups(source: DictionarySource): Promise<PartGroups> {
  for (let seed = 0; seed < MAX_SEEDS; seed++) {
    const key = `toUInt32(cityHash64(${seed}, ${GROUP_COLUMNS}))`;
    const columns = await source.readGroups(key, GROUP_COLUMNS);
    const keys = (columns[0] ?? []) as number[];
    if (new Set(keys).size < keys.length) continue;
    const table = new SeriesTable();
    const ids = new Map(keys.map((one, row) => [one, table.internGroup(groupAt(columns, row))]));
    return { groups: table.groups, keys: { sql: key, ids }, bytes: table.bytes + 40 * ids.size };
  }
  throw new Error('groups of series have the same hashes');
}

function groupAt(columns: Columns, row: number): SeriesGroup {
  const text = (column: number): string => String(columns[column]![row]);
  return {
    process: text(1),
    thread: text(2),
    path: text(3),
    command: text(4),
    containerId: text(5),
    cgroup: text(6),
    service: text(7),
    host: text(8),
    attributes: text(9),
    periodNanos: Number(text(10)),
  };
}

/** Those whose group is known: another collector may have added some meanwhile. */
async function loadSeries(source: DictionarySource, { groups, keys }: PartGroups): Promise<SeriesTable> {
  const table = new SeriesTable(groups);
  const columns = await source.read(`${keys.sql}, pid, tid, start_unix_nano`, 'series');
  const [ofGroups = [], pids = [], tids = [], starts = []] = columns;
  for (const [row, key] of ofGroups.entries()) {
    const group = keys.ids.get(key as number);
    if (group === undefined) break;
    table.append(group, Number(pids[row]), Number(tids[row]), BigInt(String(starts[row])));
  }
  return table;
}

/** Without keys where this process writes the part. */
type KeyedDictionaries = PartDictionaries & { groupKeys?: GroupKeys };

/** A part as queries see it: rows come summed from the server. */
export class ClickHousePart implements SamplePart {
  readonly type: SamplePart['type'];
  readonly startMs: number;
  readonly endMs: number;
  readonly groups: SamplePart['groups'];
  readonly #info: PartInfo;
  readonly #dictionaries: KeyedDictionaries;
  readonly #read: (sql: string) => Promise<Columns>;

  constructor(info: PartInfo, dictionaries: KeyedDictionaries, read: (sql: string) => Promise<Columns>) {
    this.#info = info;
    this.type = info.type;
    this.startMs = info.startMs;
    this.endMs = info.startMs + PART_MS;
    this.groups = dictionaries.groups;
    this.#dictionaries = dictionaries;
    this.#read = read;
  }

  series(): Promise<SeriesTable> {
    return this.#dictionaries.series();
  }

  stacks(): Promise<Stacks> {
    return this.#dictionaries.stacks();
  }

  async countSamples({ fromMs, toMs }: TimeRange): Promise<number> {
    const { id, startMs, type } = this.#info;
    const count = isCpuType(type) ? 'sum(weight)' : 'toFloat64(count())';
    const where = `part = ${id} AND t >= ${fromMs - startMs} AND t < ${toMs - startMs}`;
    const [[samples = 0] = []] = await this.#read(`SELECT ${count} FROM samples WHERE ${where}`);
    return Number(samples);
  }

  async links(): Promise<PartLinks> {
    return this.#info.hasLinks ? this.#dictionaries.links() : NO_LINKS;
  }

  rows(query: RowQuery): Promise<Rows> {
    const read = (wanted: RowQuery): Promise<Rows> => this.#rows(wanted);
    return this.#info.hasLinks ? this.#linkedRows(query) : linklessRows(query, read);
  }

  /** Links that another collector has added meanwhile are none yet. */
  async #linkedRows(query: RowQuery): Promise<Rows> {
    const rows = await this.#rows(query);
    if (rows.links === undefined) return rows;
    const { length } = await this.links();
    return { ...rows, links: Array.from(rows.links, (link) => (link < length ? link : 0)) };
  }

  #rows(query: RowQuery): Promise<Rows> {
    const { groupKeys } = this.#dictionaries;
    const read = async (wanted: RowQuery): Promise<Rows> => {
      const sql = rowsSql(this.#info, countable(wanted, this.type), groupKeys);
      if (sql === undefined) return EMPTY_ROWS;
      return readRows((await this.#read(sql)) as number[][], wanted, this.startMs, groupKeys);
    };
    // of a part that this process writes some series may be here only
    return groupKeys ? read(query) : rowsByGroup(this, query, read);
  }
}
