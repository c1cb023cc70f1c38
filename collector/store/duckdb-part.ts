import type { DuckDbFile } from './duckdb-file.ts';
import { FrameTable } from './frame-table.ts';
import { seriesKey } from './segment.ts';
import { StackTree } from './stack-tree.ts';
import type { Column, FrameKind, RowQuery, Rows, SamplePart, Series, StackCounts } from './store.ts';

type Stacks = Omit<StackCounts, 'selfCounts'>;

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

export async function loadDictionaries(
  file: Pick<DuckDbFile, 'read'>,
  id: number,
): Promise<PartDictionaries> {
  const read = async (sql: string) => (await file.read(sql)).getColumns();
  const [names = [], files = [], mappings = [], kinds = []] = await read(
    `SELECT name, file, mapping, kind FROM frames_${id} ORDER BY id`,
  );
  const frames = names.map((name, i) => ({
    name: String(name),
    file: String(files[i]),
    mapping: String(mappings[i]),
    kind: String(kinds[i]) as FrameKind,
  }));
  const [parents = [], nodeFrames = []] = await read(`SELECT parent, frame FROM nodes_${id} ORDER BY id`);
  const stacks: Stacks = {
    frames,
    parents: Uint32Array.from([0, ...(parents as number[])]),
    nodeFrames: Uint32Array.from([0, ...(nodeFrames as number[])]),
  };
  return { series: await loadSeries(file, id), stacks: async () => stacks };
}

async function loadSeries(file: Pick<DuckDbFile, 'read'>, id: number): Promise<Series[]> {
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

const EMPTY: Rows = {
  length: 0,
  times: [],
  nodes: [],
  series: [],
  cpus: [],
  weights: [],
};

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
    const sql = rowsSql(this.#info, query);
    if (sql === undefined) return EMPTY;
    try {
      const reader = await this.#file.read(sql);
      return readRows(reader.getColumns() as number[][], query, this.startMs);
    } catch (error) {
      // Retention may drop a part under a reader: its samples are gone then.
      if (this.#isDropped()) return EMPTY;
      throw error;
    }
  }
}

const SQL_COLUMNS: Record<Column, string> = { time: 'step', node: 'node', series: 'series', cpu: 'cpu' };

/** Undefined where nothing can match. Every value in it is a number. */
function rowsSql(info: PartInfo, query: RowQuery): string | undefined {
  const from = query.fromMs - info.startMs;
  const conditions = [`t >= ${from}`, `t < ${query.toMs - info.startMs}`];
  for (const [column, mask] of [
    ['series', query.series],
    ['node', query.nodes],
    ['cpu', query.cpus],
  ] as const) {
    if (mask === undefined || !mask.includes(0)) continue;
    const ids: number[] = [];
    for (const [id, wanted] of mask.entries()) if (wanted === 1) ids.push(id);
    if (ids.length === 0) return undefined;
    conditions.push(`${column} IN (${ids.join()})`);
  }
  const step = query.stepMs === 1 ? 't' : `floor((t - (${from})) / ${query.stepMs})`;
  const columns = query.by.map((column) => SQL_COLUMNS[column]);
  const selected = query.by.map((column) => (column === 'time' ? `${step} AS step` : SQL_COLUMNS[column]));
  const where = `FROM samples_${info.id} WHERE ${conditions.join(' AND ')}`;
  if (query.limit !== undefined)
    return `SELECT ${[...selected, 'weight'].join()} ${where} ORDER BY t LIMIT ${query.limit}`;
  const group = columns.length === 0 ? '' : `GROUP BY ${columns.join()}`;
  return `SELECT ${[...selected, 'coalesce(sum(weight), 0)::DOUBLE'].join()} ${where} ${group}`;
}

function readRows(columns: number[][], query: RowQuery, startMs: number): Rows {
  const column = (name: Column): number[] | undefined => {
    const index = query.by.indexOf(name);
    return index < 0 ? undefined : (columns[index] ?? []);
  };
  const from = query.fromMs - startMs;
  const times = column('time');
  const weights = columns[query.by.length] ?? [];
  return {
    length: weights.length,
    times: query.stepMs === 1 ? times : times?.map((step) => from + step * query.stepMs),
    nodes: column('node'),
    series: column('series'),
    cpus: column('cpu'),
    weights,
  };
}
