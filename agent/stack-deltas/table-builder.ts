/** Makes tables in a worker thread, which a file may bring down. */
import { WorkerClient } from '../executables/worker-client.ts';
import type { FilePlace, FileResult } from './build-from-file.ts';
import type { BuildResult } from './build-table.ts';
import type { TableRequest, TableWorkerData } from './worker.ts';

export type TableResult = BuildResult | { kind: 'crashed'; reason: string };

const IDLE_MS = 10_000;
const TIMEOUT_MS = 30_000;
const HEAP_MB = 512;

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
  readonly #worker: WorkerClient<TableRequest, FileResult>;

  /** `cache`: directory where tables are kept for later runs, below it. */
  constructor(cache?: string) {
    this.#worker = new WorkerClient({
      url: workerUrl(),
      idleMs: IDLE_MS,
      timeoutMs: TIMEOUT_MS,
      maxHeapMb: HEAP_MB,
      data: { cache } satisfies TableWorkerData,
    });
  }

  /**
   * Reads the file at a descriptor that stays open, as that of its root, until the promise settles. Without a place,
   * no other file is looked at. Never rejects.
   */
  buildFromFd(fd: number, place?: FilePlace): Promise<TableResult> {
    return this.#build({ fd, ...(place && { place }) });
  }

  /** Never rejects. */
  buildFromBytes(bytes: Uint8Array): Promise<TableResult> {
    return this.#build({ bytes });
  }

  close(): Promise<void> {
    return this.#worker.stop();
  }

  async #build(request: TableRequest): Promise<TableResult> {
    try {
      const { result, cache } = await this.#worker.request(request);
      if (cache.kind === 'found') this.stats.tablesFromDisk++;
      if (cache.kind === 'damaged') this.stats.tablesDamagedOnDisk++;
      if (cache.failed) this.stats.tablesNotKept++;
      return result;
    } catch (error) {
      return { kind: 'crashed', reason: (error as Error).message };
    }
  }
}
