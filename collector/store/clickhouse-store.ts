/**
 * The store for more than one machine: a ClickHouse server. Parts are as in the DuckDB file (an hour, written by one
 * life of one process, with its own dictionaries), but several collectors may share a database. See docs/clickhouse.md.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { type ClickHouseClient, ClickHouseLogLevel, createClient } from '@clickhouse/client';
import type { Logger } from 'pino';
import type { Profile } from '../../common/profile/profile.ts';
import { appendProfile, type SampleSink } from './append.ts';
import { ClickHousePart, loadDictionaries, readColumns } from './clickhouse-part.ts';
import { DAILY_TABLES, migrate } from './clickhouse-schema.ts';
import { writeFlush } from './clickhouse-writer.ts';
import { DictionaryCache, OpenPart, PART_MS, type PartInfo } from './duckdb-part.ts';
import { type Flush, type NotedRequest, takeBatch } from './duckdb-writer.ts';
import {
  type AppendResult,
  MAX_RECENT_REQUESTS,
  type SamplePart,
  type Store,
  type StoreStats,
  type TimeRange,
} from './store.ts';

export interface ClickHouseStoreOptions {
  /** `http(s)://USER:PASSWORD@HOST:PORT/DATABASE` */
  url: string;
  maxAgeMs: number;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
  logger: Pick<Logger, 'error'>;
}

/** What could not be written is tried again so often. */
const FLUSH_INTERVAL_MS = 1000;
/** Requests wait for each other so long: ClickHouse likes few, large inserts. */
const COMMIT_GAP_MS = 200;
/** While the server takes nothing, so many rows wait in memory; later requests are asked to come again. */
const MAX_PENDING_ROWS = 1_000_000;
const MAX_OPEN_PARTS = 6;
const MAX_OPEN_BYTES = 64 * 2 ** 20;
const MAX_LOADED_BYTES = 96 * 2 ** 20;
const RETENTION_INTERVAL_MS = 30_000;
const DAY_MS = 24 * 3_600_000;

export class ClickHouseStore implements Store {
  readonly #options: ClickHouseStoreOptions;
  readonly #client: ClickHouseClient;
  readonly #timer: NodeJS.Timeout;
  /** By start of the hour. */
  readonly #open = new Map<number, OpenPart>();
  readonly #loaded = new DictionaryCache(MAX_LOADED_BYTES);
  readonly #sink: SampleSink<OpenPart> = {
    partFor: (timeMs) => this.#partFor(timeMs),
    push: ({ startMs, pending, info }, { timeMs, node, series, cpu, weight }) => {
      pending.times.push(timeMs - startMs);
      pending.nodes.push(node);
      pending.series.push(series);
      pending.cpus.push(cpu);
      pending.weights.push(weight);
      info.events += weight;
      this.#pendingRows++;
      this.#pendingEvents += weight;
    },
  };
  #pendingRows = 0;
  #pendingEvents = 0;
  #pendingRequests: NotedRequest[] = [];
  #recentRequests: readonly string[] = [];
  /** Given to the server without an answer that says whether it was written: goes first, under its own name. */
  #unwritten: { flush: Flush; token: string } | undefined;
  #writing: Promise<void> = Promise.resolve();
  #writeError: string | undefined;
  #commit: Promise<void> | undefined;
  #flushedMs = 0;
  #retentionMs = 0;
  #droppedForAge = 0;
  #figures = {
    samples: 0,
    bytes: 0,
    oldestMs: undefined as number | undefined,
    newestMs: undefined as number | undefined,
  };
  #closed = false;

  private constructor(options: ClickHouseStoreOptions, client: ClickHouseClient) {
    this.#options = options;
    this.#client = client;
    this.#timer = setInterval(() => void this.flush(), FLUSH_INTERVAL_MS);
    this.#timer.unref();
  }

  /** @throws Error when the server can't be asked, or its database was made by a newer version */
  static async open(options: ClickHouseStoreOptions): Promise<ClickHouseStore> {
    const client = createClient({
      url: options.url,
      application: 'everyframe',
      // Whoever asked tells what failed.
      log: { level: ClickHouseLogLevel.OFF },
    });
    try {
      await migrate(client);
      const store = new ClickHouseStore(options, client);
      const [ids = []] = await readColumns(
        client,
        `SELECT id FROM requests ORDER BY at_ms DESC LIMIT ${MAX_RECENT_REQUESTS}`,
      );
      store.#recentRequests = ids.map(String).reverse();
      await store.#maintain();
      return store;
    } catch (error) {
      await client.close();
      throw error;
    }
  }

  get busy(): string | undefined {
    if (this.#pendingRows < MAX_PENDING_ROWS) return undefined;
    return `the store could not write for a while: ${this.#writeError ?? 'the server is slow'}`;
  }

  append(profile: Profile): AppendResult {
    return appendProfile(profile, this.#sink, this.#options);
  }

  noteRequest(id: string): void {
    this.#pendingRequests.push({ id, atMs: this.#options.now() });
  }

  commit(): Promise<void> {
    this.#commit ??= this.#commitSoon();
    return this.#commit;
  }

  recentRequests(): readonly string[] {
    return this.#recentRequests;
  }

  async parts({ fromMs, toMs }: TimeRange): Promise<SamplePart[]> {
    await this.flush();
    const found = (await this.#readParts(fromMs - PART_MS, toMs)).filter(
      (info) => info.minMs < toMs && info.maxMs >= fromMs,
    );
    return Promise.all(
      found.map(async (info) => {
        const open = [...this.#open.values()].find((part) => part.info.id === info.id);
        const dictionaries = open ?? (await loadDictionaries(this.#client, info, this.#loaded));
        return new ClickHousePart(info, dictionaries, this.#client);
      }),
    );
  }

  /** As of the last half minute, with what this process has added since. */
  stats(): StoreStats {
    return {
      ...this.#figures,
      samples: this.#figures.samples + this.#pendingEvents,
      maxBytes: Number.MAX_SAFE_INTEGER,
      maxAgeMs: this.#options.maxAgeMs,
      droppedForMemory: 0,
      droppedForAge: this.#droppedForAge,
    };
  }

  /** Writes what waits; a failure is logged, and tried again with the next flush. */
  flush(): Promise<void> {
    this.#writing = this.#writing.then(() => this.#flush());
    return this.#writing;
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.flush();
    this.#closed = true;
    await this.#client.close();
  }

  async #commitSoon(): Promise<void> {
    const waitMs = this.#flushedMs + COMMIT_GAP_MS - performance.now();
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, waitMs)));
    this.#commit = undefined;
    await this.flush();
    if (this.#writeError !== undefined) throw new Error(`nothing can be written: ${this.#writeError}`);
  }

  async #flush(): Promise<void> {
    if (this.#closed) return;
    try {
      await this.#writeNext();
      await this.#writeNext();
      this.#writeError = undefined;
    } catch (error) {
      this.#writeError = (error as Error).message;
      this.#options.logger.error({ err: error }, 'samples could not be written: trying again');
    }
    this.#flushedMs = performance.now();
    this.#closeOldParts();
    if (this.#options.now() - this.#retentionMs >= RETENTION_INTERVAL_MS) {
      await this.#maintain().catch((error) =>
        this.#options.logger.error({ err: error }, 'old samples could not be dropped: trying again'),
      );
    }
  }

  /** First what may or may not have been written, again: the server knows it by its token. */
  async #writeNext(): Promise<void> {
    this.#unwritten ??= { flush: this.#takeFlush(), token: randomUUID() };
    const { flush, token } = this.#unwritten;
    if (flush.batches.length > 0 || flush.requests.length > 0) await writeFlush(this.#client, flush, token);
    this.#unwritten = undefined;
    for (const { part, rows, end } of flush.batches) {
      part.written = end;
      const events = rows.weights.reduce((sum, weight) => sum + weight, 0);
      this.#pendingRows -= rows.times.length;
      this.#pendingEvents -= events;
      this.#noteFigures(part, rows.times, events);
    }
  }

  #noteFigures({ startMs }: OpenPart, times: readonly number[], events: number): void {
    const figures = this.#figures;
    figures.samples += events;
    for (const time of times) {
      figures.oldestMs = Math.min(figures.oldestMs ?? Number.MAX_SAFE_INTEGER, startMs + time);
      figures.newestMs = Math.max(figures.newestMs ?? 0, startMs + time);
    }
  }

  /** In one step, without awaiting: what arrives from now on belongs to the next flush. */
  #takeFlush(): Flush {
    const requests = this.#pendingRequests;
    this.#pendingRequests = [];
    const batches = [...this.#open.values()].filter(({ pending }) => pending.times.length > 0).map(takeBatch);
    return { batches, requests };
  }

  #partFor(timeMs: number): OpenPart {
    const startMs = Math.floor(timeMs / PART_MS) * PART_MS;
    let part = this.#open.get(startMs);
    if (part === undefined || part.bytes > MAX_OPEN_BYTES) {
      // A full part still has rows that wait: it stays open under a key that no event has.
      if (part !== undefined) this.#open.set(-part.info.id, part);
      // No two processes that share the database choose the same.
      const id = Number(randomBytes(8).readBigUInt64LE() >> 12n);
      part = new OpenPart({
        ...{ id, startMs, events: 0, hasSums: false },
        ...{ minMs: Number.MAX_SAFE_INTEGER, maxMs: 0 },
      });
      this.#open.set(startMs, part);
    }
    return part;
  }

  /** Full parts, and the oldest where events of many hours arrive. */
  #closeOldParts(): void {
    if (this.#unwritten !== undefined) return;
    const idle = [...this.#open].filter(([, { pending }]) => pending.times.length === 0);
    for (const [key] of idle) if (key < 0) this.#open.delete(key);
    idle.sort(([a], [b]) => a - b);
    for (const [key] of idle) {
      if (this.#open.size <= MAX_OPEN_PARTS) break;
      this.#open.delete(key);
    }
  }

  /** Those that begin in the range; the oldest first. */
  async #readParts(fromMs: number, toMs: number): Promise<PartInfo[]> {
    const seconds = (ms: number): number => Math.min(2 ** 32 - 1, Math.max(0, Math.floor(ms / 1000)));
    const columns = await readColumns(
      this.#client,
      `SELECT toString(part), toUnixTimestamp(start), sum(events), min(min_t), max(max_t) FROM parts
      WHERE start >= toDateTime(${seconds(fromMs)}) AND start <= toDateTime(${seconds(toMs)})
      GROUP BY part, start ORDER BY start, part`,
    );
    const [ids = [], starts = [], events = [], oldest = [], newest = []] = columns;
    return ids.map((id, i) => {
      const startMs = Number(starts[i]) * 1000;
      const [minMs, maxMs] = [startMs + Number(oldest[i]), startMs + Number(newest[i])];
      return { id: Number(id), startMs, events: Number(events[i]), minMs, maxMs, hasSums: false };
    });
  }

  /** Drops days of which every sample is too old, and reads the figures anew: others may share the database. */
  async #maintain(): Promise<void> {
    this.#retentionMs = this.#options.now();
    const oldestMs = this.#retentionMs - this.#options.maxAgeMs;
    const infos = await this.#readParts(0, Number.MAX_SAFE_INTEGER);
    const dayOf = ({ startMs }: PartInfo): number => Math.floor(startMs / DAY_MS);
    const isOld = (info: PartInfo): boolean => (dayOf(info) + 1) * DAY_MS <= oldestMs;
    for (const day of new Set(infos.filter(isOld).map(dayOf))) {
      const date = new Date(day * DAY_MS).toISOString().slice(0, 10);
      for (const table of DAILY_TABLES)
        await this.#client.command({ query: `ALTER TABLE ${table} DROP PARTITION '${date}'` });
    }
    for (const info of infos.filter(isOld)) this.#droppedForAge += info.events;
    const kept = infos.filter((info) => !isOld(info));
    const [[bytes = 0] = []] = await readColumns(
      this.#client,
      'SELECT toFloat64(sum(bytes_on_disk)) FROM system.parts WHERE active AND database = currentDatabase()',
    );
    this.#figures = {
      samples: kept.reduce((sum, { events }) => sum + events, 0),
      bytes: Number(bytes),
      oldestMs: kept.length === 0 ? undefined : Math.min(...kept.map(({ minMs }) => minMs)),
      newestMs: kept.length === 0 ? undefined : Math.max(...kept.map(({ maxMs }) => maxMs)),
    };
  }
}
