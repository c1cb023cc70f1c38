/** Makes tables in a worker, which a file may bring down. */

import type { DetectedRuntime } from '../../interpreters/contract.ts';
import { WorkerClient } from '../../workers/worker-client.ts';
import { WorkerFailure } from '../../workers/worker-failure.ts';
import type { WorkerPool } from '../../workers/worker-pool.ts';
import type { FilePlace, FileResult } from './build-from-file.ts';
import type { BuildResult } from './build-table.ts';
import type { TableRequest } from './table-requests.ts';

/** `failure`: what it did to its worker. */
export type TableResult =
  | BuildResult
  | { kind: 'crashed'; reason: string; failure: WorkerFailure | undefined };

const MAX_CPU_MS = 30_000;
/** Nobody waits for it: stacks through the file are cut until then. */
const MAX_WAIT_MS = 600_000;

export class TableBuilder {
  readonly #stats = {
    /** Tables that an earlier run made. */
    tablesFromDisk: 0,
    /** Tables on disk that were damaged, and made anew. */
    tablesDamagedOnDisk: 0,
    /** Tables that could not be written to disk. */
    tablesNotKept: 0,
  };
  readonly #worker: WorkerClient<TableRequest, FileResult | undefined, DetectedRuntime>;

  constructor(workers: WorkerPool) {
    this.#worker = new WorkerClient(workers, {
      kind: 'table',
      maxCpuMs: MAX_CPU_MS,
      maxWaitMs: MAX_WAIT_MS,
    });
  }

  /** Counters; times are milliseconds of CPU time. */
  get stats() {
    const { cpuMs: tablesCpuMs, slowestCpuMs: slowestTableCpuMs } = this.#worker.stats;
    return { ...this.#stats, tablesCpuMs, slowestTableCpuMs };
  }

  /**
   * Reads the file at a descriptor that stays open, as that of its root, until the promise settles. Without a place,
   * no other file is looked at. `onRuntime` is told of a language runtime in it as soon as that is known. Never rejects.
   */
  buildFromFd(
    fd: number,
    place?: FilePlace,
    onRuntime?: (runtime: DetectedRuntime) => void,
  ): Promise<TableResult> {
    return this.#build({ fd, ...(place && { place }) }, onRuntime);
  }

  /** `onRuntime` is told of a language runtime in the file, of which no table is made. Never rejects. */
  async look(fd: number, place: FilePlace, onRuntime: (runtime: DetectedRuntime) => void): Promise<void> {
    // whatever is wrong with the file is told when its table is to be made
    await this.#worker.request({ fd, place, isLook: true }, onRuntime).catch(() => {});
  }

  /** Never rejects. */
  buildFromBytes(bytes: Uint8Array): Promise<TableResult> {
    return this.#build({ bytes });
  }

  close(): Promise<void> {
    return this.#worker.stop();
  }

  async #build(request: TableRequest, onRuntime?: (runtime: DetectedRuntime) => void): Promise<TableResult> {
    try {
      const { result, cache } = (await this.#worker.request(request, onRuntime))!;
      if (cache.kind === 'found') this.#stats.tablesFromDisk++;
      if (cache.kind === 'damaged') this.#stats.tablesDamagedOnDisk++;
      if (cache.failed) this.#stats.tablesNotKept++;
      return result;
    } catch (error) {
      const failure = error instanceof WorkerFailure && error.reason !== 'stopped' ? error : undefined;
      return { kind: 'crashed', reason: (error as Error).message, failure };
    }
  }
}
