import { join } from 'node:path';
import { type DuckDBConnection, DuckDBInstance, type DuckDBResultReader } from '@duckdb/node-api';
import { migrate } from './duckdb-schema.ts';

interface Connections {
  instance: DuckDBInstance;
  writer: DuckDBConnection;
  reader: DuckDBConnection;
}

/**
 * The database and its two connections. DuckDB gives up on itself when a checkpoint fails, as on a full disk: it
 * then refuses everything until it is opened anew, which replays what was committed.
 */
export class DuckDbFile {
  readonly #path: string;
  #open: Connections | undefined;
  readonly #reads = new Set<Promise<unknown>>();
  #closing: Promise<void> = Promise.resolve();

  private constructor(directory: string, open: Connections) {
    this.#path = join(directory, 'everyframe.duckdb');
    this.#open = open;
  }

  /** @throws Error when the file can't be opened, is held by another process, or is of a newer version */
  static async open(directory: string): Promise<DuckDbFile> {
    return new DuckDbFile(directory, await connect(join(directory, 'everyframe.duckdb')));
  }

  get isOpen(): boolean {
    return this.#open !== undefined;
  }

  /** @throws Error while it could not be opened anew */
  get writer(): DuckDBConnection {
    return this.#connections().writer;
  }

  /** @throws Error as `writer`, and DuckDB's own */
  read(sql: string): Promise<DuckDBResultReader> {
    const answer = this.#connections().reader.runAndReadAll(sql);
    this.#reads.add(answer);
    const forget = (): void => void this.#reads.delete(answer);
    answer.then(forget, forget);
    return answer;
  }

  /** Closes the database where an error says that it gave up: `isOpen` is false then. */
  noteError(error: unknown): void {
    if (error instanceof Error && /^FATAL|database has been invalidated|^INTERNAL/.test(error.message))
      this.close();
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
      open?.reader.closeSync();
      open?.writer.closeSync();
      open?.instance.closeSync();
    });
    return this.#closing;
  }

  #connections(): Connections {
    if (this.#open === undefined) throw new Error(`${this.#path} could not be opened anew yet`);
    return this.#open;
  }
}

async function connect(path: string): Promise<Connections> {
  const instance = await DuckDBInstance.create(path, {
    memory_limit: '160MB',
    threads: '2',
    preserve_insertion_order: 'false',
    // sums by node are kept in an array, not in a hash table, up to so many bits of node ids
    perfect_ht_threshold: '20',
  });
  try {
    const writer = await instance.connect();
    await migrate(writer);
    return { instance, writer, reader: await instance.connect() };
  } catch (error) {
    instance.closeSync();
    throw error;
  }
}
