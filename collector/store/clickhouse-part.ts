import type { ClickHouseClient } from '@clickhouse/client';
import {
  type DictionaryCache,
  PART_MS,
  type PartDictionaries,
  type PartInfo,
  type Stacks,
} from './duckdb-part.ts';
import { EMPTY_ROWS, readRows, rowsSql } from './row-sql.ts';
import type { FrameKind, RowQuery, Rows, SamplePart, Series } from './store.ts';

/** Columns of an answer, in the order in which they were asked for. */
export type Columns = unknown[][];

/** Id lists of filters make long statements. */
const QUERY_SETTINGS = {
  max_query_size: String(2 ** 26),
  max_ast_elements: '10000000',
  max_expanded_ast_elements: '10000000',
};

/** @throws Error of the server */
export async function readColumns(client: ClickHouseClient, query: string): Promise<Columns> {
  const { stream } = await client.exec({
    query: `${query} FORMAT JSONCompactColumns`,
    clickhouse_settings: { ...QUERY_SETTINGS, output_format_json_quote_64bit_integers: 1 },
  });
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return JSON.parse(Buffer.concat(chunks).toString('utf8')) as Columns;
}

/** What a series takes in memory, roughly. */
const SERIES_BYTES = 700;

/** Dictionaries of a part that another process writes, or wrote. */
export async function loadDictionaries(
  client: ClickHouseClient,
  { id, events }: PartInfo,
  cache: DictionaryCache,
): Promise<PartDictionaries> {
  // Another collector may still add to it: what is known of it holds as long as it has as many events.
  const version = `${id} ${events}`;
  const series = await cache.get(`series ${version}`, async () => {
    const value = await loadSeries(client, id);
    return { value, bytes: SERIES_BYTES * value.length };
  });
  return { series, stacks: () => cache.get(`stacks ${version}`, () => loadStacks(client, id, cache)) };
}

/** An entry may be there twice, where a flush was tried again. */
const ONCE = 'ORDER BY id LIMIT 1 BY id';

async function loadStacks(
  client: ClickHouseClient,
  id: number,
  { frames: pool }: DictionaryCache,
): Promise<{ value: Stacks; bytes: number }> {
  const [names = [], files = [], mappings = [], kinds = [], binaries = []] = await readColumns(
    client,
    `SELECT name, file, mapping, kind, binary FROM frames WHERE part = ${id} ${ONCE}`,
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
  const [parents = [], nodeFrames = []] = await readColumns(
    client,
    `SELECT parent, frame FROM nodes WHERE part = ${id} ${ONCE}`,
  );
  const value: Stacks = {
    frames,
    parents: Uint32Array.from([0, ...(parents as number[])]),
    nodeFrames: Uint32Array.from([0, ...(nodeFrames as number[])]),
  };
  return { value, bytes: 8 * frames.length + 8 * value.parents.length };
}

async function loadSeries(client: ClickHouseClient, id: number): Promise<Series[]> {
  const columns = await readColumns(
    client,
    `SELECT process, pid, tid, thread, path, command, container_id, cgroup, service, host, start_unix_nano,
      period_nanos FROM series WHERE part = ${id} ${ONCE}`,
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
export class ClickHousePart implements SamplePart {
  readonly startMs: number;
  readonly endMs: number;
  readonly #info: PartInfo;
  readonly #dictionaries: PartDictionaries;
  readonly #client: ClickHouseClient;

  constructor(info: PartInfo, dictionaries: PartDictionaries, client: ClickHouseClient) {
    this.#info = info;
    this.startMs = info.startMs;
    this.endMs = info.startMs + PART_MS;
    this.#dictionaries = dictionaries;
    this.#client = client;
  }

  get series(): readonly Series[] {
    return this.#dictionaries.series;
  }

  stacks(): Promise<Stacks> {
    return this.#dictionaries.stacks();
  }

  async rows(query: RowQuery): Promise<Rows> {
    const tables = { samples: 'samples', condition: `part = ${this.#info.id}` };
    const sql = rowsSql(this.#info, query, tables);
    if (sql === undefined) return EMPTY_ROWS;
    return readRows((await readColumns(this.#client, sql)) as number[][], query, this.startMs);
  }
}
