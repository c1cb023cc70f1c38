/**
 * Tables of files that are about to be sampled. Without it the first samples of a process are cut, once for each file
 * that is new on their stacks: one meets the program, the next one libc, and so on. Of a language runtime also its part
 * of the sampler is loaded ahead.
 */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import type { Executables } from './executables/executables.ts';
import type { Tracer } from './tracer/tracer.ts';
import { within } from './within.ts';

/** A shell with its libraries has 5 files, a browser some 300. */
const MAX_FILES = 512;
/** Then sampling starts without the tables that are not there. */
const LIMIT_MS = 10_000;
const OPEN_LIMIT_MS = 1000;

const READ = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;

/** Returns when the tables are in the kernel; a file that can't be read has none then, as when it is sampled. */
export async function readAhead(
  paths: readonly string[],
  tracer: Pick<Tracer, 'reportFile' | 'drain'>,
  executables: Pick<Executables, 'settled'>,
): Promise<void> {
  const found = await Promise.all(paths.slice(0, MAX_FILES).map((path) => reportFile(path, tracer)));
  const releases = found.filter((release) => release !== undefined);
  if (releases.length === 0) return;
  tracer.drain();
  await executables.settled(LIMIT_MS);
  for (const release of releases) release();
}

/** A file server that does not answer costs this file, and a thread of libuv's. */
async function reportFile(
  path: string,
  tracer: Pick<Tracer, 'reportFile'>,
): Promise<(() => void) | undefined> {
  const opening = open(path, READ);
  const file = await within(OPEN_LIMIT_MS, opening).catch(() => undefined);
  if (!file) {
    void opening.then((late) => late.close()).catch(() => {});
    return undefined;
  }
  try {
    const stats = await within(OPEN_LIMIT_MS, file.stat());
    return stats?.isFile() ? tracer.reportFile(file.fd) : undefined;
  } catch {
    // gone, unreadable, or Linux can't run programs on demand: it is met by a sample like any other
    return undefined;
  } finally {
    await file.close().catch(() => {});
  }
}
