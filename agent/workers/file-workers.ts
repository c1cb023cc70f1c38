/** The threads that read files for the agent. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { packageRoot } from '../tracer/package-root.ts';
import type { WorkerData } from './protocol.ts';
import { WorkerPool } from './worker-pool.ts';

const HEAP_MB = 512;
const DEFAULT_DATA: WorkerData = { cache: undefined, detail: 'full', maxMemory: 256 << 20 };

/**
 * They are bundled into one file (see the Makefile): a thread that loads its modules one by one takes twice the CPU time
 * to start, and 8 MB more (docs/decisions/small-heap.md).
 */
export function createFileWorkers(data: Partial<WorkerData> = {}): WorkerPool {
  return new WorkerPool({
    url: pathToFileURL(join(packageRoot(), 'build/workers/worker.cjs')),
    maxHeapMb: HEAP_MB,
    data: { ...DEFAULT_DATA, ...data } satisfies WorkerData,
  });
}
