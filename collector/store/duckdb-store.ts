/**
 * The store that lasts: a DuckDB file. A part holds the samples of an hour with its own dictionaries, so that
 * dropping it frees everything it needed. A part is written by one life of one process; a later one, and events
 * that come late, begin another part of the same hour. See docs/store.md.
 */
import { mkdirSync } from 'node:fs';
import type { Logger } from 'pino';
import type { Profile } from '../../common/profile/profile.ts';
import { appendProfile, type SampleSink } from './append.ts';
import { DuckDbFile } from './duckdb-file.ts';
import {
  DictionaryCache,
  DuckDbPart,
  LoadedDictionaries,
  OpenPart,
  PART_MS,
  type PartDictionaries,
  type PartInfo,
} from './duckdb-part.ts';
import {
  dropTablesSql,
  type Flush,
  forgetRequests,
  giveBack,
  isWritten,
  type NotedRequest,
  readRequests,
  takeBatch,
  writeFlush,
} from './duckdb-writer.ts';
import type { AppendResult, SamplePart, Store, StoreStats, TimeRange } from './store.ts';

export interface DuckDbStoreOptions {
  /** Directory of the file; made if it is not there. */
  directory: string;
  maxBytes: number;
  maxAgeMs: number;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
  logger: Pick<Logger, 'error'>;
}

/** What could not be written is tried again so often. */
const FLUSH_INTERVAL_MS = 1000;
/** Requests wait for each other so long, to be written together: a transaction costs about 10 ms. */
const COMMIT_GAP_MS = 100;
/** While the disk takes nothing, so many rows wait in memory; later ones are refused, and counted. */
const MAX_PENDING_ROWS = 1_000_000;
const MAX_OPEN_PARTS = 6;
const MAX_OPEN_BYTES = 64 * 2 ** 20;
/** Dictionaries of parts that were read. */
const MAX_LOADED_BYTES = 96 * 2 ** 20;
const RETENTION_INTERVAL_MS = 30_000;

export class DuckDbStore implements Store {
  readonly #options: DuckDbStoreOptions;
  readonly #file: DuckDbFile;
  readonly #infos: Map<number, PartInfo>;
  readonly #timer: NodeJS.Timeout;
  /** By start of the hour. */
  readonly #open = new Map<number, OpenPart>();
  readonly #loaded = new DictionaryCache(MAX_LOADED_BYTES);
  readonly #sink: SampleSink<OpenPart> = {
    partFor: (timeMs) => this.#partFor(timeMs),
    push: (part, { timeMs, node, series, cpu, weight }) => {
      const { info, pending } = part;
      pending.times.push(timeMs - part.startMs);
      pending.nodes.push(node);
      pending.series.push(series);
      pending.cpus.push(cpu);
      pending.weights.push(weight);
      info.events += weight;
      info.minMs = Math.min(info.minMs, timeMs);
      info.maxMs = Math.max(info.maxMs, timeMs);
      this.#pendingRows++;
    },
  };
  #pendingRows = 0;
  #pendingRequests: NotedRequest[] = [];
  readonly #recentRequests: readonly string[];
  #nextId: number;
  #bytes = 0;
  #droppedForMemory = 0;
  #droppedForAge = 0;
  #retentionMs = 0;
  #writing: Promise<void> = Promise.resolve();
  #writeError: string | undefined;
  /** Under way for all that ask before it begins. */
  #commit: Promise<void> | undefined;
  /** When the last flush ended, by the clock of `performance`. */
  #flushedMs = 0;
  #closed = false;
  /** Written or not: the database gave up on the way. */
  #uncertain: Flush | undefined;

  private constructor(options: DuckDbStoreOptions, opened: Opened) {
    this.#options = options;
    this.#file = opened.file;
    this.#infos = new Map(opened.infos.map((info) => [info.id, info]));
    this.#recentRequests = opened.requests;
    this.#nextId = Math.max(0, ...this.#infos.keys()) + 1;
    this.#timer = setInterval(() => void this.flush(), FLUSH_INTERVAL_MS);
    this.#timer.unref();
  }

  /** @throws Error when the file can't be opened, or was written by a newer version */
  static async open(options: DuckDbStoreOptions): Promise<DuckDbStore> {
    const store = new DuckDbStore(options, await openFile(options.directory));
    await store.#applyRetention();
    return store;
  }

  get busy(): string | undefined {
    if (this.#pendingRows < MAX_PENDING_ROWS) return undefined;
    return `the store could not write for a while: ${this.#writeError ?? 'the disk is slow'}`;
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

  async #commitSoon(): Promise<void> {
    const waitMs = this.#flushedMs + COMMIT_GAP_MS - performance.now();
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, waitMs)));
    this.#commit = undefined;
    await this.flush();
    if (this.#writeError !== undefined) throw new Error(`nothing can be written: ${this.#writeError}`);
  }

  recentRequests(): readonly string[] {
    return this.#recentRequests;
  }

  async parts({ fromMs, toMs }: TimeRange): Promise<SamplePart[]> {
    await this.flush();
    const infos = [...this.#infos.values()]
      .filter(({ events, minMs, maxMs }) => events > 0 && minMs < toMs && maxMs >= fromMs)
      .sort((a, b) => a.startMs - b.startMs || a.id - b.id);
    const parts: SamplePart[] = [];
    for (const info of infos) {
      // What could not be written is not there to be read.
      if (this.#openPart(info)?.written.events === 0) continue;
      const dictionaries = await this.#dictionaries(info);
      parts.push(new DuckDbPart(info, dictionaries, this.#file, () => !this.#infos.has(info.id)));
    }
    return parts;
  }

  stats(): StoreStats {
    const infos = [...this.#infos.values()].filter(({ events }) => events > 0);
    return {
      samples: infos.reduce((sum, { events }) => sum + events, 0),
      bytes: this.#bytes,
      maxBytes: this.#options.maxBytes,
      maxAgeMs: this.#options.maxAgeMs,
      oldestMs: infos.length === 0 ? undefined : Math.min(...infos.map(({ minMs }) => minMs)),
      newestMs: infos.length === 0 ? undefined : Math.max(...infos.map(({ maxMs }) => maxMs)),
      droppedForMemory: this.#droppedForMemory,
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
    await this.#file.close();
  }

  async #flush(): Promise<void> {
    if (this.#closed) return;
    try {
      if (!this.#file.isOpen) await this.#openAgain();
      await this.#write(this.#takeFlush());
      this.#writeError = undefined;
    } catch (error) {
      this.#writeError = (error as Error).message;
      this.#options.logger.error({ err: error }, 'samples could not be written: trying again');
    }
    this.#flushedMs = performance.now();
    this.#closeOldParts();
    if (this.#options.now() - this.#retentionMs >= RETENTION_INTERVAL_MS) await this.#applyRetention();
  }

  async #write(flush: Flush): Promise<void> {
    if (flush.batches.length === 0 && flush.requests.length === 0) return;
    try {
      await writeFlush(this.#file.writer, flush);
      this.#noteWritten(flush);
    } catch (error) {
      this.#file.noteError(error);
      // What failed may have been the checkpoint after the commit: the file knows once it is open again.
      if (this.#file.isOpen) this.#giveBack(flush);
      else this.#uncertain = flush;
      throw error;
    }
  }

  async #openAgain(): Promise<void> {
    await this.#file.reopen();
    const flush = this.#uncertain;
    this.#uncertain = undefined;
    if (flush === undefined) return;
    if (await isWritten(this.#file.writer, flush)) this.#noteWritten(flush);
    else this.#giveBack(flush);
  }

  #noteWritten(flush: Flush): void {
    for (const { part, rows, end } of flush.batches) {
      part.written = end;
      this.#pendingRows -= rows.times.length;
    }
  }

  #giveBack(flush: Flush): void {
    for (const batch of flush.batches) giveBack(batch);
    this.#pendingRequests = flush.requests.concat(this.#pendingRequests);
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
      const id = this.#nextId++;
      const info = { id, startMs, events: 0, minMs: Number.MAX_SAFE_INTEGER, maxMs: 0, hasSums: true };
      part = new OpenPart(info);
      this.#infos.set(info.id, info);
      this.#open.set(startMs, part);
    }
    return part;
  }

  #openPart({ id }: PartInfo): OpenPart | undefined {
    return [...this.#open.values()].find(({ info }) => info.id === id);
  }

  async #dictionaries(info: PartInfo): Promise<PartDictionaries> {
    return this.#openPart(info) ?? LoadedDictionaries.open(this.#file, info.id, this.#loaded);
  }

  /** Full parts, and the oldest where events of many hours arrive. */
  #closeOldParts(): void {
    const idle = [...this.#open].filter(([, { pending }]) => pending.times.length === 0);
    for (const [key] of idle) if (key < 0) this.#open.delete(key);
    idle.sort(([a], [b]) => a - b);
    for (const [key] of idle) {
      if (this.#open.size <= MAX_OPEN_PARTS) break;
      this.#open.delete(key);
    }
  }

  async #applyRetention(): Promise<void> {
    if (!this.#file.isOpen) return;
    this.#retentionMs = this.#options.now();
    const oldestMs = this.#retentionMs - this.#options.maxAgeMs;
    try {
      await forgetRequests(this.#file.writer, this.#retentionMs);
      for (const info of this.#closedInfos()) {
        if (info.maxMs < oldestMs && !this.#isWaiting(info)) this.#droppedForAge += await this.#drop(info);
      }
      this.#bytes = await this.#measure();
      for (const info of this.#closedInfos()) {
        if (this.#bytes <= this.#options.maxBytes) break;
        if (this.#isWaiting(info)) continue;
        this.#droppedForMemory += await this.#drop(info);
        await this.#file.writer.run('CHECKPOINT');
        this.#bytes = await this.#measure();
      }
    } catch (error) {
      this.#file.noteError(error);
      this.#options.logger.error({ err: error }, 'old samples could not be dropped: trying again');
    }
  }

  /** Parts without rows that wait, the oldest first. */
  #closedInfos(): PartInfo[] {
    return [...this.#infos.values()]
      .filter((info) => info.events > 0 && !this.#isWaiting(info))
      .sort((a, b) => a.startMs - b.startMs || a.id - b.id);
  }

  /** Rows may arrive while the database is at work. */
  #isWaiting(info: PartInfo): boolean {
    return (this.#openPart(info)?.pending.times.length ?? 0) > 0;
  }

  async #drop(info: PartInfo): Promise<number> {
    this.#infos.delete(info.id);
    try {
      await this.#file.writer.run(dropTablesSql(info.id));
    } catch (error) {
      this.#infos.set(info.id, info);
      throw error;
    }
    for (const [key, part] of this.#open) if (part.info.id === info.id) this.#open.delete(key);
    return info.events;
  }

  /** Bytes of blocks in use, and of the write-ahead log. */
  async #measure(): Promise<number> {
    const reader = await this.#file.writer.runAndReadAll(
      'SELECT (block_size * used_blocks)::DOUBLE FROM pragma_database_size()',
    );
    return Number(reader.getColumns()[0]?.[0] ?? 0);
  }
}

interface Opened {
  file: DuckDbFile;
  infos: PartInfo[];
  requests: string[];
}

async function openFile(directory: string): Promise<Opened> {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const file = await DuckDbFile.open(directory);
  try {
    const rows = await file.writer.runAndReadAll(
      'SELECT id, start_ms, events, min_ms, max_ms, has_sums FROM parts',
    );
    const infos = rows.getRows().map((row): PartInfo => {
      const [id = 0, startMs = 0, events = 0, minMs = 0, maxMs = 0] = row.map(Number);
      return { id, startMs, events, minMs, maxMs, hasSums: row[5] === true };
    });
    return { file, infos, requests: await readRequests(file.writer) };
  } catch (error) {
    await file.close();
    throw error;
  }
}
