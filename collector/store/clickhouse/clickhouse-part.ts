import type { FrameKind } from '../../../common/flame/frame-kind.ts';
import { isCpuType } from '../../../common/profile/model/profile-type.ts';
import {
  type DictionaryCache,
  PART_MS,
  type PartDictionaries,
  type PartInfo,
} from '../database/database-part.ts';
import { rowsByGroup } from '../rows-by-group.ts';
import { SeriesTable } from '../series-table.ts';
import type { Frame, RowQuery, Rows, SamplePart, Stacks, TimeRange } from '../store.ts';
import type { Columns } from './clickhouse-reader.ts';
import { EMPTY_ROWS, readRows, rowsSql } from './clickhouse-rows.ts';

const PAGE_ROWS = 32_768;
const FRAME_COLUMNS = 'name, file, mapping, kind, "binary", line';

/** Reads dictionaries of parts that this process does not write. */
export interface DictionarySource {
  /** Another one's is another; it changes when the dictionaries may have grown. */
  key: string;
  /** Entries in the order of their ids; given `ids`, those from the first to before the second. */
  read(
    columns: string,
    table: 'frames' | 'nodes' | 'series',
    ids?: readonly [number, number],
  ): Promise<Columns>;
}

export async function loadDictionaries(
  source: DictionarySource,
  cache: DictionaryCache,
): Promise<PartDictionaries> {
  const series = await cache.get(`series ${source.key}`, async () => {
    const value = await loadSeries(source);
    return { value, bytes: value.bytes };
  });
  return {
    groups: series.groups,
    series: async () => series,
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

/** An answer is objects of JavaScript until it is copied: a whole part's would take hundreds of MiB for a moment. */
async function* readPages(
  { read }: DictionarySource,
  columns: string,
  table: 'frames' | 'nodes',
): AsyncGenerator<Columns> {
  for (let from = 0; ; from += PAGE_ROWS) {
    const page = await read(columns, table, [from, from + PAGE_ROWS]);
    yield page;
    // node 0, the root, is in no table
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

async function loadSeries(source: DictionarySource): Promise<SeriesTable> {
  const columns = await source.read(
    `process, pid, tid, thread, path, command, container_id, cgroup, service, host, start_unix_nano,
      period_nanos, attributes`,
    'series',
  );
  const table = new SeriesTable();
  for (const row of (columns[0] ?? []).keys()) {
    const text = (column: number): string => String(columns[column]![row]);
    const group = table.internGroup({
      process: text(0),
      thread: text(3),
      path: text(4),
      command: text(5),
      containerId: text(6),
      cgroup: text(7),
      service: text(8),
      host: text(9),
      attributes: text(12),
      periodNanos: Number(text(11)),
    });
    table.append(group, Number(text(1)), Number(text(2)), BigInt(text(10)));
  }
  return table;
}

/** A part as queries see it: rows come summed from the server. */
export class ClickHousePart implements SamplePart {
  readonly type: SamplePart['type'];
  readonly startMs: number;
  readonly endMs: number;
  readonly groups: SamplePart['groups'];
  readonly #info: PartInfo;
  readonly #dictionaries: PartDictionaries;
  readonly #read: (sql: string) => Promise<Columns>;

  constructor(info: PartInfo, dictionaries: PartDictionaries, read: (sql: string) => Promise<Columns>) {
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

  rows(query: RowQuery): Promise<Rows> {
    return rowsByGroup(this, query, async (bySeries) => {
      const sql = rowsSql(this.#info, bySeries);
      if (sql === undefined) return EMPTY_ROWS;
      return readRows((await this.#read(sql)) as number[][], bySeries, this.startMs);
    });
  }
}
