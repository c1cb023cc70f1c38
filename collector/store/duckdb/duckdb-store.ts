/**
 * The store that lasts: a DuckDB file. A part holds the samples of an hour with its own dictionaries, so that
 * dropping it frees everything it needed. A part is written by one life of one process; a later one, and events
 * that come late, begin another part of the same hour. See docs/store.md.
 */

import type { DuckDBConnection } from '@duckdb/node-api';
import { type ProfileType, typeKey } from '../../../common/profile/model/profile-type.ts';
import { emptyPart, type PartInfo } from '../database/database-part.ts';
import { DatabaseStore, type DatabaseStoreOptions } from '../database/database-store.ts';
import type { Flush } from '../database/open-parts.ts';
import { PartDropped, type SamplePart, type StoreStats, type TimeRange, type TypedRange } from '../store.ts';
import { CPU_KEY, CPU_TYPE } from '../stored-type.ts';
import { isDamage, openOrSetAside, setFileAside } from './damaged-file.ts';
import { prepareDirectory } from './data-directory.ts';
import type { Scan } from './duckdb-columns.ts';
import { DATABASE_NAME, DuckDbFile } from './duckdb-file.ts';
import { DuckDbPart, loadDictionaries, openDictionaries, readAllStacks } from './duckdb-part.ts';
import { DuckDbTrees, makeTree } from './duckdb-trees.ts';
import { dropTablesSql, forgetRequests, isWritten, readRequests, writeFlush } from './duckdb-writer.ts';

export interface DuckDbStoreOptions extends DatabaseStoreOptions {
  /** Directory of the file; made if it is not there. */
  directory: string;
  maxBytes: number;
}

/** Smaller parts are read as fast as they are. */
const MIN_SUMMED_SAMPLES = 1000;
/** Then the file will not be written any more, however often it is opened. */
const MAX_DAMAGED_WRITES = 3;
/**
 * Parts of a transaction, and parts that may begin before a checkpoint: until then each takes about 1 MiB of the database's
 * 64 MiB of memory.
 */
const MAX_NEW_PARTS = 16;
/** A transaction costs about 10 ms. */
const COMMIT_GAP_MS = 100;

export class DuckDbStore extends DatabaseStore {
  readonly #options: DuckDbStoreOptions;
  readonly #file: DuckDbFile;
  readonly #infos: Map<number, PartInfo>;
  readonly #recentRequests: readonly string[];
  #nextId: number;
  #bytes = 0;
  #droppedForMemory = 0;
  #droppedForAge = 0;
  /** Written or not: the database gave up on the way. */
  #uncertain: Flush | undefined;
  #trees: DuckDbTrees;
  /** Begun since the last checkpoint. */
  #newParts = 0;
  /** In a row, each with the file opened anew. */
  #damagedWrites = 0;
  /** Parts of which no tree could be made. */
  readonly #unsummed = new Set<number>();
  /** Parts that can't be read. */
  readonly #damaged = new Map<number, PartInfo>();
  /** Says what was found damaged when the store was opened. */
  #setAside: string | undefined;
  /** By the clock of `performance`. */
  #nextSumMs = 0;

  private constructor(options: DuckDbStoreOptions, opened: Opened) {
    super(options, { commitGapMs: COMMIT_GAP_MS, bottleneck: 'disk' });
    this.#options = options;
    this.#file = opened.file;
    this.#infos = new Map(opened.infos.map((info) => [info.id, info]));
    this.#recentRequests = opened.requests;
    this.#trees = opened.trees;
    this.#setAside = opened.setAside;
    this.#nextId = Math.max(0, ...this.#infos.keys()) + 1;
  }

  /** @throws Error when the file can't be opened, or was written by a newer version */
  static async open(options: DuckDbStoreOptions): Promise<DuckDbStore> {
    const store = new DuckDbStore(options, await openFile(options));
    await store.tryToRetain();
    return store;
  }

  recentRequests(): readonly string[] {
    return this.#recentRequests;
  }

  async types(range: TimeRange): Promise<ProfileType[]> {
    return [...new Map(this.#within(range).map(({ type }) => [typeKey(type), type])).values()];
  }

  #within({ fromMs, toMs }: TimeRange): PartInfo[] {
    return [...this.#infos.values()].filter(
      ({ id, samples, minMs, maxMs }) =>
        samples > 0 && minMs < toMs && maxMs >= fromMs && !this.#damaged.has(id),
    );
  }

  protected knownTypes(): ReadonlySet<string> {
    return new Set([...this.#infos.values()].map(({ type }) => typeKey(type)));
  }

  async parts(range: TypedRange): Promise<SamplePart[]> {
    await this.flush();
    const { type: wanted = CPU_KEY } = range;
    const infos = this.#within(range)
      .filter(({ type }) => typeKey(type) === wanted)
      .sort((a, b) => a.startMs - b.startMs || a.id - b.id);
    const parts: SamplePart[] = [];
    for (const info of infos) {
      // What could not be written is not there to be read.
      const open = this.open.find(info);
      if (open?.written.samples === 0) continue;
      const scan = this.#scanOf(info);
      const dictionaries =
        open === undefined
          ? await loadDictionaries(info, scan, this.loaded)
          : openDictionaries(open, info, scan);
      parts.push(new DuckDbPart(info, dictionaries, scan, this.#trees));
    }
    return parts;
  }

  stats(): StoreStats {
    const infos = [...this.#infos.values()].filter(({ samples }) => samples > 0);
    return {
      samples: infos.reduce((sum, { samples }) => sum + samples, 0),
      bytes: this.#bytes,
      maxBytes: this.#options.maxBytes,
      maxAgeMs: this.#options.maxAgeMs,
      oldestMs: infos.length === 0 ? undefined : Math.min(...infos.map(({ minMs }) => minMs)),
      newestMs: infos.length === 0 ? undefined : Math.max(...infos.map(({ maxMs }) => maxMs)),
      droppedForMemory: this.#droppedForMemory,
      droppedForAge: this.#droppedForAge,
    };
  }

  override async close(): Promise<void> {
    await super.close();
    await this.#file.close();
  }

  protected beginPart(startMs: number, type: ProfileType): PartInfo {
    const info = emptyPart(this.#nextId++, startMs, type);
    this.#infos.set(info.id, info);
    return info;
  }

  #scanOf({ id }: PartInfo): Scan {
    return async (sql, take) => {
      try {
        await this.#file.scan(sql, take);
      } catch (error) {
        if (!this.#infos.has(id)) throw new PartDropped();
        this.#file.noteReadError(error);
        if (!isDamage(error)) throw error;
        this.#leaveOut(id, error as Error);
        throw new PartDropped();
      }
    };
  }

  /** One part that can't be read: its hour is missing from what is shown, everything else is there. */
  #leaveOut(id: number, error: Error): void {
    const info = this.#infos.get(id);
    if (info === undefined || this.#damaged.has(id)) return;
    this.#damaged.set(id, info);
    this.#options.logger.error(
      { err: error },
      `the part of ${hourOf(info)} is damaged on disk: it is left out`,
    );
  }

  override get problem(): string | undefined {
    const hours = [...this.#damaged.values()].map(hourOf);
    const damage =
      hours.length === 0
        ? this.#setAside
        : `${hours.length} of ${this.#infos.size} parts are damaged on disk and left out: ${hours.slice(0, 3).join(', ')}`;
    return super.problem ?? damage;
  }

  protected async write(): Promise<void> {
    if (this.#damagedWrites >= MAX_DAMAGED_WRITES) await this.#beginAnew();
    else if (!this.#file.isOpen) await this.#openAgain();
    let flush: Flush;
    do {
      await this.open.whole();
      flush = this.open.takeFlush(MAX_NEW_PARTS);
      await this.#writeFlush(flush);
    } while (flush.isPartial);
  }

  async #writeFlush(flush: Flush): Promise<void> {
    if (flush.batches.length === 0 && flush.requests.length === 0) return;
    try {
      await writeFlush(this.#file.writer, flush);
      this.#newParts += flush.batches.filter(({ part }) => part.written.samples === 0).length;
      if (this.#newParts >= MAX_NEW_PARTS) {
        await this.#file.writer.run('CHECKPOINT');
        this.#newParts = 0;
      }
      this.open.noteWritten(flush);
      this.#damagedWrites = 0;
    } catch (error) {
      // What failed may have been the checkpoint after the commit: the file knows once it is open again.
      this.#uncertain = flush;
      void this.#file.close();
      this.#damagedWrites = isDamage(error) ? this.#damagedWrites + 1 : 0;
      throw error;
    }
  }

  async #openAgain(): Promise<void> {
    await this.#file.reopen();
    this.#newParts = 0;
    const flush = this.#uncertain;
    this.#uncertain = undefined;
    if (flush === undefined) return;
    if (await isWritten(this.#file.writer, flush)) this.open.noteWritten(flush);
    else this.open.giveBack(flush);
  }

  /** The file can be read and not be written: it is set aside, and what waits goes into a new one. */
  async #beginAnew(): Promise<void> {
    await this.#file.close();
    const { directory, logger } = this.#options;
    this.#setAside = setFileAside(
      directory,
      [DATABASE_NAME, `${DATABASE_NAME}.wal`],
      'it could not be written',
      logger,
    );
    if (this.#uncertain !== undefined) this.open.giveBack(this.#uncertain);
    this.#uncertain = undefined;
    this.open.startOver();
    this.#infos.clear();
    for (const info of this.open.infos) this.#infos.set(info.id, info);
    this.#damaged.clear();
    this.#damagedWrites = 0;
    await this.#file.reopen();
    this.#trees = await DuckDbTrees.open(this.#file.writer);
  }

  protected async retain(): Promise<void> {
    if (!this.#file.isOpen) return;
    const now = this.#options.now();
    try {
      await forgetRequests(this.#file.writer, now);
      await this.#dropOld(now - this.#options.maxAgeMs);
      await this.#dropLarge();
      await this.#trees.tidy(this.#file.writer);
    } catch (error) {
      void this.#file.close();
      throw error;
    }
  }

  /** One part, and then nothing for ten times as long: what arrives does not wait often. */
  protected override async sumParts(): Promise<void> {
    if (!this.#file.isOpen || performance.now() < this.#nextSumMs) return;
    const [info] = this.#partsToSum();
    if (info === undefined) return;
    const startMs = performance.now();
    try {
      await this.#sumPart(info);
    } catch (error) {
      this.#unsummed.add(info.id);
      void this.#file.close();
      this.#options.logger.error(
        { err: error },
        'samples of an hour could not be summed: large pictures are slow',
      );
    }
    this.#nextSumMs = performance.now() + 10 * (performance.now() - startMs);
  }

  /** Complete parts of which pictures read every stack until they are summed too. */
  get partsToSum(): number {
    return this.#partsToSum().length;
  }

  #partsToSum(): PartInfo[] {
    return this.#closedInfos().filter((info) => {
      const isOpen = this.open.find(info) !== undefined;
      const isDone = this.#unsummed.has(info.id) || this.#trees.find(info.id) !== undefined;
      return info.samples >= MIN_SUMMED_SAMPLES && !isOpen && !isDone;
    });
  }

  async #sumPart(info: PartInfo): Promise<void> {
    const scan = this.#scanOf(info);
    const counts = await readAllStacks(info, scan, this.loaded);
    if (!(await this.#trees.write(this.#file.writer, scan, info.id, makeTree(counts))))
      this.#unsummed.add(info.id);
  }

  async #dropOld(oldestMs: number): Promise<void> {
    for (const info of this.#closedInfos()) {
      if (info.maxMs < oldestMs && !this.#isWaiting(info)) this.#droppedForAge += await this.#drop(info);
    }
  }

  async #dropLarge(): Promise<void> {
    this.#bytes = await this.#measure();
    if (this.#bytes > this.#options.maxBytes && this.#file.logBytes > 0) {
      // what is in the log takes other room in the file
      await this.#file.writer.run('CHECKPOINT');
      this.#bytes = await this.#measure();
    }
    for (const info of this.#closedInfos()) {
      if (this.#bytes <= this.#options.maxBytes) break;
      if (this.#isWaiting(info)) continue;
      this.#droppedForMemory += await this.#drop(info);
      await this.#file.writer.run('CHECKPOINT');
      this.#bytes = await this.#measure();
    }
  }

  /** Parts without rows that wait, the oldest first. */
  #closedInfos(): PartInfo[] {
    return [...this.#infos.values()]
      .filter((info) => info.samples > 0 && !this.#isWaiting(info))
      .sort((a, b) => a.startMs - b.startMs || a.id - b.id);
  }

  /** Rows may arrive while the database is at work. */
  #isWaiting(info: PartInfo): boolean {
    return (this.open.find(info)?.waitingSamples ?? 0) > 0;
  }

  async #drop(info: PartInfo): Promise<number> {
    this.#infos.delete(info.id);
    // Before the database is at work: what arrives meanwhile goes elsewhere.
    this.open.close(info);
    try {
      await this.#file.writer.run(`${this.#trees.dropSql(info.id)} ${dropTablesSql(info.id)}`);
      this.#trees.noteDropped(info.id);
      this.#unsummed.delete(info.id);
    } catch (error) {
      this.#infos.set(info.id, info);
      throw error;
    }
    return info.samples;
  }

  /** Bytes of blocks in use, and of the write-ahead log. */
  async #measure(): Promise<number> {
    const reader = await this.#file.writer.runAndReadAll(
      'SELECT (block_size * used_blocks)::DOUBLE FROM pragma_database_size()',
    );
    return Number(reader.getColumns()[0]?.[0] ?? 0) + this.#file.logBytes;
  }
}

interface Opened {
  file: DuckDbFile;
  trees: DuckDbTrees;
  infos: PartInfo[];
  requests: string[];
  setAside?: string | undefined;
}

async function openFile({ directory, logger }: DuckDbStoreOptions): Promise<Opened> {
  prepareDirectory(directory);
  const { opened, setAside } = await openOrSetAside(directory, () => readFile(directory), logger);
  return { ...opened, setAside };
}

async function readFile(directory: string): Promise<Opened> {
  const file = await DuckDbFile.open(directory);
  try {
    const types = await readTypes(file.writer);
    const reader = await file.writer.runAndReadAll('SELECT part FROM linked_parts');
    const linked = new Set(reader.getColumns()[0]?.map(Number));
    const rows = await file.writer.runAndReadAll('SELECT id, start_ms, events, min_ms, max_ms FROM parts');
    const infos = rows.getRows().map((row): PartInfo => {
      const [id = 0, startMs = 0, samples = 0, minMs = 0, maxMs = 0] = row.map(Number);
      const type = types.get(id) ?? CPU_TYPE;
      return { id, startMs, type, samples, minMs, maxMs, hasLinks: linked.has(id) };
    });
    const trees = await DuckDbTrees.open(file.writer);
    return { file, infos, trees, requests: await readRequests(file.writer) };
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** By part. */
async function readTypes(connection: DuckDBConnection): Promise<Map<number, ProfileType>> {
  const reader = await connection.runAndReadAll(
    'SELECT part, sample_type, sample_unit, period_type, period_unit FROM types',
  );
  return new Map(
    reader.getRows().map(([part, ...texts]): [number, ProfileType] => {
      const [type = '', unit = '', periodType = '', periodUnit = ''] = texts.map(String);
      return [
        Number(part),
        { sampleType: { type, unit }, periodType: { type: periodType, unit: periodUnit }, period: 0n },
      ];
    }),
  );
}

const hourOf = ({ startMs }: PartInfo): string => new Date(startMs).toISOString().slice(0, 16);
