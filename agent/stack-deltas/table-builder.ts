/** One worker thread that exists only while there is work, and that is replaced when a file brings it down. */
import { Worker } from 'node:worker_threads';
import type { FilePlace } from './build-from-file.ts';
import type { BuildResult } from './build-table.ts';
import type { TableWorkerData, WorkerReply, WorkerRequest } from './worker.ts';

export type TableResult = BuildResult | { kind: 'crashed'; reason: string };

const IDLE_MS = 10_000;
const TIMEOUT_MS = 30_000;
const HEAP_MIB = 512;

interface Job {
  request: Omit<WorkerRequest, 'id'>;
  resolve(result: TableResult): void;
}

/** The compiled worker, also when this module runs from its source (in tests). */
function workerUrl(): URL {
  const compiled = import.meta.url.endsWith('.js');
  return new URL(compiled ? './worker.js' : '../../dist/agent/stack-deltas/worker.js', import.meta.url);
}

export class TableBuilder {
  readonly stats = {
    /** Tables that an earlier run made. */
    tablesFromDisk: 0,
    /** Tables on disk that were damaged, and made anew. */
    tablesDamagedOnDisk: 0,
    /** Tables that could not be written to disk. */
    tablesNotKept: 0,
  };
  readonly #cache: string | undefined;
  #worker: Worker | undefined;
  readonly #queue: Job[] = [];
  #running: { id: number; job: Job; timer: NodeJS.Timeout } | undefined;
  #idle: NodeJS.Timeout | undefined;
  #nextId = 1;

  /** `cache`: directory where tables are kept for later runs, below it. */
  constructor(cache?: string) {
    this.#cache = cache;
  }

  /**
   * Reads the file at a descriptor that stays open, as that of its root, until the promise settles. Without a place,
   * no other file is looked at. Never rejects.
   */
  buildFromFd(fd: number, place?: FilePlace): Promise<TableResult> {
    return this.#submit({ fd, ...(place && { place }) });
  }

  buildFromBytes(bytes: Uint8Array): Promise<TableResult> {
    return this.#submit({ bytes });
  }

  async close(): Promise<void> {
    clearTimeout(this.#idle);
    for (const job of this.#queue.splice(0))
      job.resolve({ kind: 'crashed', reason: 'the agent is stopping' });
    const worker = this.#worker;
    this.#fail('the agent is stopping');
    await worker?.terminate();
  }

  #submit(request: Omit<WorkerRequest, 'id'>): Promise<TableResult> {
    return new Promise((resolve) => {
      this.#queue.push({ request, resolve });
      this.#next();
    });
  }

  #next(): void {
    if (this.#running) return;
    const job = this.#queue.shift();
    if (!job) {
      this.#idle = setTimeout(() => this.#retire(), IDLE_MS).unref();
      return;
    }
    clearTimeout(this.#idle);
    this.#worker ??= this.#start();
    this.#worker.ref();
    const id = this.#nextId++;
    const timer = setTimeout(() => this.#fail(`took longer than ${TIMEOUT_MS / 1000} s`), TIMEOUT_MS);
    this.#running = { id, job, timer };
    this.#worker.postMessage({ id, ...job.request } satisfies WorkerRequest);
  }

  #start(): Worker {
    const worker = new Worker(workerUrl(), {
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB },
      workerData: { cache: this.#cache } satisfies TableWorkerData,
    });
    worker.on('message', ({ id, result, cache }: WorkerReply) => {
      if (this.#running?.id !== id) return;
      if (cache.kind === 'found') this.stats.tablesFromDisk++;
      if (cache.kind === 'damaged') this.stats.tablesDamagedOnDisk++;
      if (cache.failed) this.stats.tablesNotKept++;
      this.#settle(result);
    });
    worker.on('error', (error) => {
      if (worker === this.#worker) this.#fail(error.message);
    });
    return worker;
  }

  #settle(result: TableResult): void {
    const running = this.#running;
    this.#running = undefined;
    clearTimeout(running?.timer);
    this.#worker?.unref();
    running?.job.resolve(result);
    this.#next();
  }

  /** The worker is lost; the file that it was at fails, the others go on in a new one. */
  #fail(reason: string): void {
    this.#retire();
    if (this.#running) this.#settle({ kind: 'crashed', reason });
  }

  #retire(): void {
    const worker = this.#worker;
    this.#worker = undefined;
    void worker?.terminate();
  }
}
