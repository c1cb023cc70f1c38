/** Where the modules of worker threads lie. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { packageRoot } from './tracer/package-root.ts';

/**
 * Each is bundled into one file (see the Makefile): a thread that loads its modules one by one takes twice the CPU time
 * to start, and 8 MB more (docs/decisions/small-heap.md).
 */
export const workerUrl = (name: 'stack-deltas' | 'symbols' | 'source-maps'): URL =>
  pathToFileURL(join(packageRoot(), `build/workers/${name}.cjs`));
