/** Keeps a directory of files small that can be made again. */
import { lstatSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Of the files whose names end in `ending`, or in that and the number of a process (half-written ones of runs that were
 * killed), those that were used longest ago leave. To look at each takes time too: their number is bounded as well.
 */
export function pruneFiles(
  directory: string,
  ending: string,
  { maxBytes, maxFiles }: { maxBytes: number; maxFiles: number },
): void {
  const files = readdirSync(directory)
    .filter((name) => name.replace(/\.\d+$/, '').endsWith(ending))
    .map((name) => join(directory, name))
    .map((path) => ({ path, stats: lstatSync(path, { throwIfNoEntry: false }) }))
    .sort((a, b) => (b.stats?.mtimeMs ?? 0) - (a.stats?.mtimeMs ?? 0));
  let total = 0;
  for (const [i, { path, stats }] of files.entries()) {
    total += stats?.size ?? 0;
    if (total > maxBytes || i >= maxFiles) rmSync(path, { force: true });
  }
}
