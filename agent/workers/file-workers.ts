/** The workers that read files for the agent. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../base/package-root.ts';
import { productVersion } from '../base/product-version.ts';
import { openCache } from '../files/cache-directory.ts';
import { makeCacheDirectory } from '../files/own-directory.ts';
import { findScratchRoom } from '../symbolizer/cache/scratch-file.ts';
import type { WorkerData } from './protocol.ts';
import { WorkerPool } from './worker-pool.ts';

const DEFAULT_MAX_MEMORY = 256 << 20;
/** Share of the agent's budget that one file may take, while the agent keeps the rest. */
const MEMORY_SHARE = 1 / 2;
const MIN_BYTES = 128 << 20;
/** Beside what is resident: what V8 and the C library set aside. The kernel refuses what is more (RLIMIT_DATA). */
const RESERVED_BYTES = 64 << 20;
/**
 * As the agent's (docs/decisions/process/memory.md), but for the young generation, of which three semi-spaces stay resident;
 * nearly all that workers hold lies outside their heaps. V8's code is of no use with other flags: they are the same always.
 */
const NODE_FLAGS = [
  '--max-old-space-size=512',
  '--min-semi-space-size=2',
  '--max-semi-space-size=2',
  '--single-threaded-gc',
  '--v8-pool-size=0',
  '--no-flush-bytecode',
];

export interface FileWorkerOptions {
  cache?: string | undefined;
  detail?: WorkerData['detail'];
  maxMemory?: number;
  /** Told of files that took a worker down. */
  warn?: (message: string) => void;
}

/**
 * They are bundled into one file (see the Makefile): a worker that loads its modules one by one takes twice the CPU time
 * to start, and 8 MB more (docs/decisions/process/memory.md).
 */
export function createFileWorkers(options: FileWorkerOptions = {}): WorkerPool {
  const { detail = 'full', maxMemory = DEFAULT_MAX_MEMORY } = options;
  const cache = makeDirectories(options.cache);
  const scratch = findScratchRoom([cache])?.directory;
  const maxBytes = Math.max(MIN_BYTES, maxMemory * MEMORY_SHARE);
  return new WorkerPool({
    command: commandOf({ cache, scratch, maxBytes }),
    maxBytes,
    ...(options.warn && { warn: options.warn }),
    data: { cache, scratch, detail, maxMemory, version: productVersion() },
  });
}

/** With the folders in it; undefined where they can't be had, or others may write to them. */
const makeDirectories = (cache: string | undefined): string | undefined =>
  openCache(cache, (directory) => {
    for (const folder of ['', 'symbols', 'tables']) makeCacheDirectory(join(directory, folder));
    return directory;
  });

function commandOf(places: {
  cache: string | undefined;
  scratch: string | undefined;
  maxBytes: number;
}): [string, ...string[]] {
  const build = join(packageRoot(), 'build');
  const workers = join(build, 'workers');
  const given: [string, string | number | undefined][] = [
    ['--parent', process.pid],
    ['--data-bytes', places.maxBytes + RESERVED_BYTES],
    ['--node', process.execPath],
    ['--bundle', join(workers, 'worker.cjs')],
    ['--code', join(workers, `${process.version}-${process.arch}.code`)],
    ['--addon', join(build, 'everyframe.node')],
    ['--cache', places.cache],
    ['--scratch', places.scratch],
  ];
  return [
    join(build, 'worker-launcher'),
    ...given.flatMap(([name, value]) => (value === undefined ? [] : [name, String(value)])),
    '--',
    ...NODE_FLAGS,
    '-e',
    readFileSync(join(workers, 'start.cjs'), 'utf8'),
  ];
}
