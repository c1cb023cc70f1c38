/**
 * Tables of files that are about to be sampled. Without it the first samples of a process are cut, once for each file
 * that is new on their stacks: one meets the program, the next one libc, and so on. Of a language runtime also its part
 * of the sampler is loaded ahead.
 */
import type { Executables } from './executables/executables.ts';
import { closeFile, type ForeignFiles, NOBODY } from './processes/foreign-files.ts';
import type { Tracer } from './tracer/tracer.ts';

/** A shell with its libraries has 5 files, a browser some 300. */
const MAX_FILES = 512;
/** Then sampling starts without the tables that are not there. */
const LIMIT_MS = 10_000;

/** Returns when the tables are in the kernel; a file that can't be read has none then, as when it is sampled. */
export async function preloadTables(
  paths: readonly string[],
  tracer: Pick<Tracer, 'reportFile' | 'drain'>,
  executables: Pick<Executables, 'settled'>,
  files: ForeignFiles,
): Promise<void> {
  const found = await Promise.all(paths.slice(0, MAX_FILES).map((path) => reportFile(path, tracer, files)));
  const releases = found.filter((release) => release !== undefined);
  if (releases.length === 0) return;
  tracer.drain();
  await executables.settled(LIMIT_MS);
  for (const release of releases) release();
}

async function reportFile(
  path: string,
  tracer: Pick<Tracer, 'reportFile'>,
  files: ForeignFiles,
): Promise<(() => void) | undefined> {
  const found = await files.lookAt(path, true, NOBODY);
  if (typeof found === 'number' || found.fd < 0) return undefined;
  try {
    return tracer.reportFile(found.fd);
  } catch {
    // Linux can't run programs on demand: it is reported by a sample like any other
    return undefined;
  } finally {
    closeFile(found);
  }
}
