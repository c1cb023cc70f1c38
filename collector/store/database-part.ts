/** What the stores in DuckDB and in ClickHouse have in common to read a part with: SQL that both understand. */
import { LRUCache } from 'lru-cache';
import { FrameTable } from './frame-table.ts';
import { PartSums } from './part-sums.ts';
import { EMPTY_ROWS, type RowTables, readRows, rowsSql, splitBySums } from './row-sql.ts';
import type { Frame, FrameKind, RowQuery, Rows, SamplePart, Series, Stacks } from './store.ts';

export const PART_MS = 3_600_000;
/** What a loaded series takes in memory, roughly. */
const SERIES_BYTES = 700;
const MAX_POOL_BYTES = 64 * 2 ** 20;
const PAGE_ROWS = 32_768;
const FRAME_COLUMNS = 'name, file, mapping, kind, "binary", line';

/** What the catalogue says of a part. */
export interface PartInfo {
  /** Names its tables, `samples_3`, `nodes_3`, …, or its rows. */
  id: number;
  /** Start of its hour. */
  startMs: number;
  /** Events, and the times of the oldest and the newest. */
  events: number;
  minMs: number;
  maxMs: number;
  /** Whether there are sums of ten seconds: not in files of an older version, nor in ClickHouse. */
  hasSums: boolean;
}

export const emptyPart = (id: number, startMs: number, hasSums: boolean): PartInfo => {
  return { id, startMs, events: 0, minMs: Number.MAX_SAFE_INTEGER, maxMs: 0, hasSums };
};

/** Columns of an answer, in the order in which they were asked for. */
export type Columns = readonly (readonly unknown[])[];

/** What a reader needs of a part's dictionaries. What asks for times and labels needs no stacks. */
export interface PartDictionaries {
  readonly series: readonly Series[];
  stacks(): Promise<Stacks>;
  /** Missing where samples are still added. */
  sums?(): Promise<PartSums>;
}

/** Where the dictionaries of a part are that this process does not write. */
export interface DictionarySource {
  /** Another one's is another; it changes when the dictionaries may have grown. */
  key: string;
  /** Entries in the order of their ids; given `ids`, those from the first to before the second. */
  read(
    columns: string,
    table: 'frames' | 'nodes' | 'series',
    ids?: readonly [number, number],
  ): Promise<Columns>;
  /** Tens of seconds, series and events of the part's sums, if it has them. */
  readSums?(): Promise<Columns>;
}

export async function loadDictionaries(
  source: DictionarySource,
  cache: DictionaryCache,
): Promise<PartDictionaries> {
  const series = await cache.get(`series ${source.key}`, async () => {
    const value = await loadSeries(source);
    return { value, bytes: SERIES_BYTES * value.length };
  });
  const stacks = (): Promise<Stacks> =>
    cache.get(`stacks ${source.key}`, () => loadStacks(source, cache.frames));
  const readSums = source.readSums?.bind(source);
  if (readSums === undefined) return { series, stacks };
  const sums = (): Promise<PartSums> =>
    cache.get(`sums ${source.key}`, async () => {
      const [tens = [], ids = [], weights = []] = (await readSums()) as number[][];
      const value = new PartSums(tens, ids, weights);
      return { value, bytes: value.bytes };
    });
  return { series, stacks, sums };
}

/** Hours have most frames in common: each is one object, whichever parts it is in, and so are their texts. */
class FramePool {
  #table = new FrameTable({ keepsLines: true });

  share(frame: Frame): Frame {
    if (this.#table.bytes > MAX_POOL_BYTES) this.#table = new FrameTable({ keepsLines: true });
    return this.#table.frames[this.#table.intern(frame)]!;
  }
}

/** What was loaded of late, within a number of bytes. */
export class DictionaryCache {
  readonly frames = new FramePool();
  readonly #values: LRUCache<string, object>;
  readonly #loading = new Map<string, Promise<object>>();

  constructor(maxBytes: number) {
    this.#values = new LRUCache({ maxSize: maxBytes });
  }

  /** Loads what is not there; who asks meanwhile gets the same. */
  async get<T extends object>(key: string, load: () => Promise<{ value: T; bytes: number }>): Promise<T> {
    const known = this.#values.get(key) ?? (await this.#loading.get(key));
    if (known !== undefined) return known as T;
    const loading = load().then(({ value, bytes }) => {
      this.#values.set(key, value, { size: Math.max(1, bytes) });
      return value;
    });
    this.#loading.set(key, loading);
    try {
      return await loading;
    } finally {
      this.#loading.delete(key);
    }
  }
}

async function loadStacks(
  source: DictionarySource,
  pool: FramePool,
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

async function loadSeries(source: DictionarySource): Promise<Series[]> {
  const columns = await source.read(
    `process, pid, tid, thread, path, command, container_id, cgroup, service, host, start_unix_nano,
      period_nanos`,
    'series',
  );
  return (columns[0] ?? []).map((process, i) => {
    const text = (column: number): string => String(columns[column]![i]);
    return {
      process: String(process),
      pid: Number(text(1)),
      tid: Number(text(2)),
      thread: text(3),
      path: text(4),
      command: text(5),
      containerId: text(6),
      cgroup: text(7),
      service: text(8),
      host: text(9),
      startUnixNano: BigInt(text(10)),
      periodNanos: Number(text(11)),
    };
  });
}

/** A part as queries see it: rows come summed from the database. */
export class DatabasePart implements SamplePart {
  readonly startMs: number;
  readonly endMs: number;
  readonly #info: PartInfo;
  readonly #dictionaries: PartDictionaries;
  readonly #tables: RowTables;
  readonly #read: (sql: string) => Promise<Columns>;

  constructor(
    info: PartInfo,
    dictionaries: PartDictionaries,
    tables: RowTables,
    read: (sql: string) => Promise<Columns>,
  ) {
    this.#info = info;
    this.startMs = info.startMs;
    this.endMs = info.startMs + PART_MS;
    this.#dictionaries = dictionaries;
    this.#tables = tables;
    this.#read = read;
  }

  get series(): readonly Series[] {
    return this.#dictionaries.series;
  }

  stacks(): Promise<Stacks> {
    return this.#dictionaries.stacks();
  }

  async rows(query: RowQuery): Promise<Rows> {
    const sums = this.#dictionaries.sums;
    const split = sums && splitBySums(this.#info, query, this.#tables);
    if (split !== undefined) {
      const whole = (await sums!()).select(query, split.isWhole);
      return split.rest === undefined ? whole : concatRows(whole, await this.#readRows(split.rest, query));
    }
    const sql = rowsSql(this.#info, query, this.#tables);
    return sql === undefined ? EMPTY_ROWS : this.#readRows(sql, query);
  }

  async #readRows(sql: string, query: RowQuery): Promise<Rows> {
    return readRows((await this.#read(sql)) as number[][], query, this.startMs);
  }
}

/** Of the same query. */
function concatRows(a: Rows, b: Rows): Rows {
  const join = (one: ArrayLike<number> | undefined, two: ArrayLike<number> | undefined) => {
    if (one === undefined || two === undefined) return undefined;
    const both = new Float64Array(one.length + two.length);
    both.set(one);
    both.set(two, one.length);
    return both;
  };
  return {
    length: a.length + b.length,
    times: join(a.times, b.times),
    nodes: undefined,
    series: join(a.series, b.series),
    cpus: undefined,
    weights: join(a.weights, b.weights),
  };
}
