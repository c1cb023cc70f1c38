import { statSync } from 'node:fs';
import { join } from 'node:path';
import { type DuckDBConnection, type DuckDBDataChunk, DuckDBInstance } from '@duckdb/node-api';
import { StoreUnavailable } from '../store.ts';
import { migrate } from './duckdb-schema.ts';

export const DATABASE_NAME = 'everyframe.duckdb';

interface Connections {
  instance: DuckDBInstance;
  writer: DuckDBConnection;
}

/**
 * The database and the connection that writes. DuckDB gives up on itself when a checkpoint fails, as on a full disk: it
 * then refuses everything until it is opened anew, which replays what was committed. Other failures leave a transaction
 * that can't be ended, or limits that were taken from the disk when it was full: who writes opens it anew after each.
 */
export class DuckDbFile {
  readonly #path: string;
  #open: Connections | undefined;
  readonly #reads = new Set<Promise<unknown>>();
  #closing: Promise<void> = Promise.resolve();

  private constructor(directory: string, open: Connections) {
    this.#path = join(directory, DATABASE_NAME);
    this.#open = open;
  }

  /** @throws Error when the file can't be opened, is damaged, held by another process, or of a newer version */
  static async open(directory: string): Promise<DuckDbFile> {
    return new DuckDbFile(directory, await connect(join(directory, DATABASE_NAME)));
  }

  get isOpen(): boolean {
    return this.#open !== undefined;
  }

  /** Of the write-ahead log: what was written since the last checkpoint. */
  get logBytes(): number {
    return statSync(`${this.#path}.wal`, { throwIfNoEntry: false })?.size ?? 0;
  }

  /** @throws Error while it could not be opened anew */
  get writer(): DuckDBConnection {
    return this.#connections().writer;
  }

  /**
   * Gives an answer chunk by chunk, in no order. Each has a connection of its own: a second statement would end the first.
   *
   * @throws Error as `writer`, and DuckDB's own
   */
  scan(sql: string, take: (chunk: DuckDBDataChunk) => void): Promise<void> {
    const reading = scan(this.#connections().instance, sql, take);
    this.#reads.add(reading);
    const forget = (): void => void this.#reads.delete(reading);
    reading.then(forget, forget);
    return reading;
  }

  /** Closes the database where an error of a read says that it gave up: `isOpen` is false then. */
  noteReadError(error: unknown): void {
    if (error instanceof Error && /^FATAL|database has been invalidated|^INTERNAL/.test(error.message))
      void this.close();
  }

  /** @throws Error while it can't be opened */
  async reopen(): Promise<void> {
    await this.#closing;
    if (this.#open === undefined) this.#open = await connect(this.#path);
  }

  /** Waits for the reads under way: they use the connection from other threads. */
  close(): Promise<void> {
    const open = this.#open;
    this.#open = undefined;
    this.#closing = Promise.allSettled(this.#reads).then(() => {
      open?.writer.closeSync();
      open?.instance.closeSync();
    });
    return this.#closing;
  }

  #connections(): Connections {
    if (this.#open === undefined) throw new StoreUnavailable(`${this.#path} could not be opened anew yet`);
    return this.#open;
  }
}

async function connect(path: string): Promise<Connections> {
  const instance = await DuckDBInstance.create(path, {
    memory_limit: '64MB',
    threads: '2',
    preserve_insertion_order: 'false',
    // Otherwise it is 90 % of what the disk has room for now: of a disk that was full when it was opened, nothing ever.
    max_temp_directory_size: '2GB',
  });
  try {
    const writer = await instance.connect();
    await migrate(writer);
    return { instance, writer };
  } catch (error) {
    instance.closeSync();
    throw error;
  }
}

async function scan(
  instance: DuckDBInstance,
  sql: string,
  take: (chunk: DuckDBDataChunk) => void,
): Promise<void> {
  const connection = await instance.connect();
  try {
    const result = await connection.stream(sql);
    for (
      let chunk = await result.fetchChunk();
      chunk !== null && chunk.rowCount > 0;
      chunk = await result.fetchChunk()
    )
      take(chunk);
  } finally {
    connection.closeSync();
  }
}
