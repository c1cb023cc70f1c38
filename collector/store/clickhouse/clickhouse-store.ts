/**
 * The store for more than one machine: a ClickHouse server. Parts are as in the DuckDB file (an hour, written by one
 * life of one process, with its own dictionaries), but several collectors may share a database. See docs/clickhouse.md.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { type ClickHouseClient, ClickHouseLogLevel, createClient } from '@clickhouse/client';
import { isCpuType, type ProfileType, typeKey } from '../../../common/profile/model/profile-type.ts';
import { emptyPart, PART_MS, type PartInfo } from '../database/database-part.ts';
import { DatabaseStore, type DatabaseStoreOptions } from '../database/database-store.ts';
import type { Flush } from '../database/open-parts.ts';
import {
  MAX_RECENT_REQUESTS,
  type SamplePart,
  type StoreStats,
  type TimeRange,
  type TypedRange,
} from '../store.ts';
import { CPU_KEY, CPU_TYPE } from '../stored-type.ts';
import { ClickHousePart, type DictionarySource, loadDictionaries } from './clickhouse-part.ts';
import { REQUEST_TIMEOUT_MS, readColumns } from './clickhouse-reader.ts';
import { DAILY_TABLES, migrate } from './clickhouse-schema.ts';
import { writeFlush } from './clickhouse-writer.ts';

export interface ClickHouseStoreOptions extends DatabaseStoreOptions {
  /** `http(s)://USER:PASSWORD@HOST:PORT/DATABASE` */
  url: string;
}

/** ClickHouse likes few, large inserts. */
const COMMIT_GAP_MS = 200;
const DAY_MS = 24 * 3_600_000;
/** Dictionaries of parts: what a server sends of them is in memory until it is read. */
const LOADS_AT_ONCE = 4;

export class ClickHouseStore extends DatabaseStore {
  readonly #options: ClickHouseStoreOptions;
  readonly #client: ClickHouseClient;
  #recentRequests: readonly string[] = [];
  /** Given to the server without an answer that says whether it was written: goes first, under its own name. */
  #unwritten: { flush: Flush; token: string } | undefined;
  #droppedForAge = 0;
  /** Keys. */
  #types: ReadonlySet<string> = new Set();
  #figures = {
    samples: 0,
    bytes: 0,
    oldestMs: undefined as number | undefined,
    newestMs: undefined as number | undefined,
  };

  private constructor(options: ClickHouseStoreOptions, client: ClickHouseClient) {
    super(options, { commitGapMs: COMMIT_GAP_MS, bottleneck: 'server' });
    this.#options = options;
    this.#client = client;
  }

  /** @throws Error when the server can't be asked, or its database was made by a newer version */
  static async open(options: ClickHouseStoreOptions): Promise<ClickHouseStore> {
    const client = createClient({
      url: options.url,
      application: 'everyframe',
      request_timeout: REQUEST_TIMEOUT_MS,
      // Whoever asked says what failed.
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
      await store.retain();
      return store;
    } catch (error) {
      await client.close();
      throw error;
    }
  }

  recentRequests(): readonly string[] {
    return this.#recentRequests;
  }

  async types(range: TimeRange): Promise<ProfileType[]> {
    return [...new Map((await this.#within(range)).map(({ type }) => [typeKey(type), type])).values()];
  }

  /** As of the last half minute, with those that this process has added since. */
  protected knownTypes(): ReadonlySet<string> {
    return new Set([...this.#types, ...this.open.infos.map(({ type }) => typeKey(type))]);
  }

  async #within({ fromMs, toMs }: TimeRange): Promise<PartInfo[]> {
    await this.flush();
    const infos = await this.#readParts(fromMs - PART_MS, toMs);
    return infos.filter(({ minMs, maxMs }) => minMs < toMs && maxMs >= fromMs);
  }

  async parts(range: TypedRange): Promise<SamplePart[]> {
    const { type: wanted = CPU_KEY } = range;
    const found = (await this.#within(range)).filter(({ type }) => typeKey(type) === wanted);
    const parts: SamplePart[] = [];
    for (let i = 0; i < found.length; i += LOADS_AT_ONCE)
      parts.push(...(await Promise.all(found.slice(i, i + LOADS_AT_ONCE).map((info) => this.#part(info)))));
    return parts;
  }

  async #part(info: PartInfo): Promise<SamplePart> {
    const dictionaries =
      this.open.find(info) ?? (await loadDictionaries(this.#dictionarySource(info), this.loaded));
    return new ClickHousePart(info, dictionaries, (sql) => readColumns(this.#client, sql));
  }

  /** As of the last half minute, with what this process has added since. */
  stats(): StoreStats {
    return {
      ...this.#figures,
      samples: this.#figures.samples + this.open.waitingSamples,
      maxBytes: Number.MAX_SAFE_INTEGER,
      maxAgeMs: this.#options.maxAgeMs,
      droppedForMemory: 0,
      droppedForAge: this.#droppedForAge,
    };
  }

  override async close(): Promise<void> {
    await super.close();
    await this.#client.close();
  }

  protected beginPart(startMs: number, type: ProfileType): PartInfo {
    // No two processes that share the database choose the same.
    const id = Number(randomBytes(8).readBigUInt64LE() >> 12n);
    return emptyPart(id, startMs, type);
  }

  #dictionarySource({ id, samples }: PartInfo): DictionarySource {
    return {
      // Another collector may still add to it: what is known of it holds as long as it has as many samples.
      key: `${id} ${samples}`,
      // An entry may be there twice, where a flush was tried again.
      read: (columns, table, ids) => {
        const where = ids === undefined ? '' : `AND id >= ${ids[0]} AND id < ${ids[1]}`;
        return readColumns(
          this.#client,
          `SELECT ${columns} FROM ${table} WHERE part = ${id} ${where} ORDER BY id LIMIT 1 BY id`,
        );
      },
      readGroups: (key, columns) =>
        readColumns(
          this.#client,
          `SELECT ${key}, ${columns} FROM series WHERE part = ${id} GROUP BY ${columns}`,
        ),
    };
  }

  protected async write(): Promise<void> {
    if (this.#unwritten !== undefined) await this.#writeNext();
    await this.#writeNext();
  }

  /** First what may or may not have been written, again: the server knows it by its token. */
  async #writeNext(): Promise<void> {
    await this.open.whole();
    this.#unwritten ??= { flush: this.open.takeFlush(), token: randomUUID() };
    const { flush, token } = this.#unwritten;
    if (flush.batches.length > 0 || flush.requests.length > 0) await writeFlush(this.#client, flush, token);
    this.#unwritten = undefined;
    for (const { part, end } of flush.batches)
      this.#noteFigures(part.info, end.samples - part.written.samples);
    this.open.noteWritten(flush);
  }

  #noteFigures({ minMs, maxMs }: PartInfo, samples: number): void {
    const figures = this.#figures;
    figures.samples += samples;
    figures.oldestMs = Math.min(figures.oldestMs ?? minMs, minMs);
    figures.newestMs = Math.max(figures.newestMs ?? maxMs, maxMs);
  }

  /** Parts that begin in the range; the oldest first. */
  async #readParts(fromMs: number, toMs: number): Promise<PartInfo[]> {
    const seconds = (ms: number): number => Math.min(2 ** 32 - 1, Math.max(0, Math.floor(ms / 1000)));
    const columns = await readColumns(
      this.#client,
      `SELECT toString(part), toUnixTimestamp(start), sum(events), min(min_t), max(max_t), toFloat64(sum(row_count)) FROM parts
      WHERE start >= toDateTime(${seconds(fromMs)}) AND start <= toDateTime(${seconds(toMs)})
      GROUP BY part, start ORDER BY start, part`,
    );
    const [ids = [], starts = [], events = [], oldest = [], newest = [], rows = []] = columns;
    // Read behind the parts, whose types and links were written first.
    const range = [seconds(fromMs), seconds(toMs)] as const;
    const [types, linked] = await Promise.all([this.#readTypes(...range), this.#readLinked(...range)]);
    return ids.map((id, i) => {
      const startMs = Number(starts[i]) * 1000;
      const [minMs, maxMs] = [startMs + Number(oldest[i]), startMs + Number(newest[i])];
      const type = types.get(String(id)) ?? CPU_TYPE;
      const samples = Number(isCpuType(type) ? events[i] : rows[i]);
      return { id: Number(id), startMs, type, samples, minMs, maxMs, hasLinks: linked.has(String(id)) };
    });
  }

  /** Parts that have links, the first of which is 1; times in seconds. */
  async #readLinked(from: number, to: number): Promise<Set<string>> {
    const [parts = []] = await readColumns(
      this.#client,
      `SELECT toString(part) FROM links
      WHERE start >= toDateTime(${from}) AND start <= toDateTime(${to}) AND id = 1`,
    );
    return new Set(parts.map(String));
  }

  /** By part; times in seconds. */
  async #readTypes(from: number, to: number): Promise<Map<string, ProfileType>> {
    const columns = await readColumns(
      this.#client,
      `SELECT toString(part), sample_type, sample_unit, period_type, period_unit FROM types
      WHERE start >= toDateTime(${from}) AND start <= toDateTime(${to})`,
    );
    const [ids = [], ...texts] = columns;
    return new Map(
      ids.map((id, i): [string, ProfileType] => {
        const [type, unit, periodType, periodUnit] = texts.map((column) => String(column[i]));
        const [sample, period] = [
          { type: type!, unit: unit! },
          { type: periodType!, unit: periodUnit! },
        ];
        return [String(id), { sampleType: sample, periodType: period, period: 0n }];
      }),
    );
  }

  /** Drops days of which every sample is too old, and reads the figures anew: others may share the database. */
  protected async retain(): Promise<void> {
    const oldestMs = this.#options.now() - this.#options.maxAgeMs;
    const infos = await this.#readParts(0, Number.MAX_SAFE_INTEGER);
    const dayOf = ({ startMs }: PartInfo): number => Math.floor(startMs / DAY_MS);
    const isOld = (info: PartInfo): boolean => (dayOf(info) + 1) * DAY_MS <= oldestMs;
    for (const day of new Set(infos.filter(isOld).map(dayOf))) {
      const date = new Date(day * DAY_MS).toISOString().slice(0, 10);
      for (const table of DAILY_TABLES)
        await this.#client.command({ query: `ALTER TABLE ${table} DROP PARTITION '${date}'` });
    }
    for (const info of infos.filter(isOld)) this.#droppedForAge += info.samples;
    const kept = infos.filter((info) => !isOld(info));
    this.#types = new Set(kept.map(({ type }) => typeKey(type)));
    const [[bytes = 0] = []] = await readColumns(
      this.#client,
      'SELECT toFloat64(sum(bytes_on_disk)) FROM system.parts WHERE active AND database = currentDatabase()',
    );
    this.#figures = {
      samples: kept.reduce((sum, { samples }) => sum + samples, 0),
      bytes: Number(bytes),
      oldestMs: kept.length === 0 ? undefined : Math.min(...kept.map(({ minMs }) => minMs)),
      newestMs: kept.length === 0 ? undefined : Math.max(...kept.map(({ maxMs }) => maxMs)),
    };
  }
}
