/** What the stores in DuckDB and in ClickHouse have in common to read a part with: SQL that both understand. */
import { LRUCache } from 'lru-cache';
import { PartSums } from './part-sums.ts';
import { EMPTY_ROWS, type RowTables, readRows, rowsSql, splitBySums } from './row-sql.ts';
import type { Frame, FrameKind, RowQuery, Rows, SamplePart, Series, Stacks } from './store.ts';

export const PART_MS = 3_600_000;
/** What a loaded series takes in memory, roughly. */
const SERIES_BYTES = 700;
/** Some 300 bytes each. */
const MAX_POOLED_FRAMES = 400_000;

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
  /** Entries in the order of their ids. */
  read(columns: string, table: 'frames' | 'nodes' | 'series'): Promise<Columns>;
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

/** Hours have most frames in common: each is one object, whichever parts it is in. */
class FramePool {
  readonly #frames = new Map<string, Frame>();

  share({ name, file, mapping, kind, binary, line }: Required<Frame>): Frame {
    const key = `${kind}\0${mapping}\0${file}\0${name}\0${binary}\0${line}`;
    let frame = this.#frames.get(key);
    if (frame === undefined) {
      if (this.#frames.size >= MAX_POOLED_FRAMES) this.#frames.clear();
      frame = { name, file, mapping, kind, ...(binary !== '' && { binary }), ...(line > 0 && { line }) };
      this.#frames.set(key, frame);
    }
    return frame;
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
  const columns = await source.read('name, file, mapping, kind, "binary", line', 'frames');
  const [names = [], files = [], mappings = [], kinds = [], binaries = [], lines = []] = columns;
  const frames = names.map((name, i) =>
    pool.share({
      name: String(name),
      file: String(files[i]),
      mapping: String(mappings[i]),
      kind: String(kinds[i]) as FrameKind,
      binary: String(binaries[i]),
      line: Number(lines[i]),
    }),
  );
  const [parents = [], nodeFrames = []] = await source.read('parent, frame', 'nodes');
  const value: Stacks = {
    frames,
    parents: Uint32Array.from([0, ...(parents as number[])]),
    nodeFrames: Uint32Array.from([0, ...(nodeFrames as number[])]),
  };
  return { value, bytes: 8 * frames.length + 8 * value.parents.length };
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
