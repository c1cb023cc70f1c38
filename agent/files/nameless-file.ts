/** A file without a name: it is gone when it is closed, also after a crash. */
import { randomBytes } from 'node:crypto';
import { constants, openSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';

/** open(2): O_TMPFILE holds O_DIRECTORY, whose value depends on the architecture. */
const O_TMPFILE = 0o20000000 | constants.O_DIRECTORY;

/** Its descriptor. Throws where the directory can't be written to. */
export function openNameless(directory: string): number {
  try {
    return openSync(directory, O_TMPFILE | constants.O_RDWR, 0o600);
  } catch {
    // overlayfs of old kernels, network file systems
    const path = join(directory, `.everyframe-${randomBytes(12).toString('hex')}`);
    const fd = openSync(path, 'wx+', 0o600);
    unlinkSync(path);
    return fd;
  }
}
