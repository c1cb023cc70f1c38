import { LRUCache } from 'lru-cache';
import type { DuckDbFile } from './duckdb-file.ts';
import { FrameTable } from './frame-table.ts';
import { EMPTY_ROWS, readRows, rowsSql } from './row-sql.ts';
import { seriesKey } from './segment.ts';
import { StackTree } from './stack-tree.ts';
import type { Frame, FrameKind, RowQuery, Rows, SamplePart, Series, StackCounts } from './store.ts';

export type Stacks = Omit<StackCounts, 'selfCounts'>;

/** What the catalogue says of a part. */
export interface PartInfo {
  /** Names its tables: `samples_3`, `nodes_3`, … */
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

export const PART_MS = 3_600_000;

/** Rows that wait to be written. */
export class PendingRows {
  readonly times: number[] = [];
  readonly nodes: number[] = [];
  readonly series: number[] = [];
  readonly cpus: number[] = [];
  readonly weights: number[] = [];
}

/** A part that this process writes: its dictionaries are in memory, and what is new of them waits with the rows. */
export class OpenPart {
  readonly info: PartInfo;
  readonly startMs: number;
  readonly frames = new FrameTable();
  readonly tree = new StackTree();
  readonly series: Series[] = [];
  readonly #seriesIds = new Map<string, number>();
  pending = new PendingRows();
  /** Entries of the dictionaries that the database has; node 0, the root, is in no table. */
  written = { frames: 0, nodes: 1, series: 0, events: 0 };

  constructor(info: PartInfo) {
    this.info = info;
    this.startMs = info.startMs;
  }

  get bytes(): number {
    return this.frames.bytes + this.tree.bytes + 700 * this.series.length;
  }

  internSeries(series: Series): number {
    const key = seriesKey(series);
    let id = this.#seriesIds.get(key);
    if (id === undefined) {
      id = this.series.push(series) - 1;
      this.#seriesIds.set(key, id);
    }
    return id;
  }

  async stacks(): Promise<Stacks> {
    const { tree, frames } = this;
    return {
      frames: frames.frames,
      parents: tree.parents.slice(0, tree.size),
      nodeFrames: tree.frames.slice(0, tree.size),
    };
  }
}

/** What a reader needs of a part's dictionaries. */
export interface PartDictionaries {
  readonly series: readonly Series[];
  stacks(): Promise<Stacks>;
}

/** What a series takes in memory, roughly. */
const SERIES_BYTES = 700;
/** Some 300 bytes each. */
const MAX_POOLED_FRAMES = 400_000;

/** Dictionaries of a part that is not being written. What asks for times and labels needs no stacks. */
export class LoadedDictionaries implements PartDictionaries {
  readonly series: readonly Series[];
  readonly #load: () => Promise<Stacks>;

  private constructor(series: readonly Series[], load: () => Promise<Stacks>) {
    this.series = series;
    this.#load = load;
  }

  static async open(file: Reads, id: number, cache: DictionaryCache): Promise<LoadedDictionaries> {
    const series = await cache.get(`series ${id}`, async () => {
      const value = await loadSeries(file, id);
      return { value, bytes: SERIES_BYTES * value.length };
    });
    return new LoadedDictionaries(series, () =>
      cache.get(`stacks ${id}`, () => loadStacks(file, id, cache.frames)),
    );
  }

  stacks(): Promise<Stacks> {
    return this.#load();
  }
}

type Reads = Pick<DuckDbFile, 'read'>;

/** Hours have most frames in common: each is one object, whichever parts it is in. */
class FramePool {
  readonly #frames = new Map<string, Frame>();

  share({ name, file, mapping, kind, binary }: Required<Frame>): Frame {
    const key = `${kind}\0${mapping}\0${file}\0${name}\0${binary}`;
    let frame = this.#frames.get(key);
    if (frame === undefined) {
      if (this.#frames.size >= MAX_POOLED_FRAMES) this.#frames.clear();
      frame = { name, file, mapping, kind, ...(binary !== '' && { binary }) };
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
  file: Reads,
  id: number,
  pool: FramePool,
): Promise<{ value: Stacks; bytes: number }> {
  const read = async (sql: string) => (await file.read(sql)).getColumns();
  const [names = [], files = [], mappings = [], kinds = [], binaries = []] = await read(
    `SELECT name, file, mapping, kind, "binary" FROM frames_${id} ORDER BY id`,
  );
  const frames = names.map((name, i) =>
    pool.share({
      name: String(name),
      file: String(files[i]),
      mapping: String(mappings[i]),
      kind: String(kinds[i]) as FrameKind,
      binary: String(binaries[i]),
    }),
  );
  const [parents = [], nodeFrames = []] = await read(`SELECT parent, frame FROM nodes_${id} ORDER BY id`);
  const value: Stacks = {
    frames,
    parents: Uint32Array.from([0, ...(parents as number[])]),
    nodeFrames: Uint32Array.from([0, ...(nodeFrames as number[])]),
  };
  return { value, bytes: 8 * frames.length + 8 * value.parents.length };
}

async function loadSeries(file: Reads, id: number): Promise<Series[]> {
  const reader = await file.read(`SELECT * FROM series_${id} ORDER BY id`);
  return reader.getRowObjects().map((row) => ({
    process: String(row['process']),
    pid: Number(row['pid']),
    tid: Number(row['tid']),
    thread: String(row['thread']),
    path: String(row['path']),
    command: String(row['command']),
    containerId: String(row['container_id']),
    cgroup: String(row['cgroup']),
    service: String(row['service']),
    host: String(row['host']),
    startUnixNano: BigInt(row['start_unix_nano'] as bigint),
    periodNanos: Number(row['period_nanos']),
  }));
}

/** A part as queries see it: rows come summed from the database. */
export class DuckDbPart implements SamplePart {
  readonly startMs: number;
  readonly endMs: number;
  readonly #info: PartInfo;
  readonly #dictionaries: PartDictionaries;
  readonly #file: Pick<DuckDbFile, 'read'>;
  readonly #isDropped: () => boolean;

  constructor(
    info: PartInfo,
    dictionaries: PartDictionaries,
    file: Pick<DuckDbFile, 'read'>,
    isDropped: () => boolean,
  ) {
    this.#info = info;
    this.startMs = info.startMs;
    this.endMs = info.startMs + PART_MS;
    this.#dictionaries = dictionaries;
    this.#file = file;
    this.#isDropped = isDropped;
  }

  get series(): readonly Series[] {
    return this.#dictionaries.series;
  }

  stacks(): Promise<Stacks> {
    return this.#dictionaries.stacks();
  }

  async rows(query: RowQuery): Promise<Rows> {
    const { id, hasSums } = this.#info;
    const tables = { samples: `samples_${id}`, sums: hasSums ? `sums_${id}` : undefined };
    const sql = rowsSql(this.#info, query, tables);
    if (sql === undefined) return EMPTY_ROWS;
    try {
      const reader = await this.#file.read(sql);
      return readRows(reader.getColumns() as number[][], query, this.startMs);
    } catch (error) {
      // Retention may drop a part under a reader: its samples are gone then.
      if (this.#isDropped()) return EMPTY_ROWS;
      throw error;
    }
  }
}
