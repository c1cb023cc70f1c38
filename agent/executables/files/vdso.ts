/**
 * The vDSO: code that the kernel maps into every process, without a file. It is the same for all 64-bit processes
 * of a kernel, so ours stands for all.
 */
import { closeSync, openSync, readFileSync, readSync } from 'node:fs';

/** Two pages on amd64, up to a few more. */
const MAX_VDSO_BYTES = 256 * 1024;

/** The image as it is mapped into this process; undefined where there is none (`vdso=0`). */
export function readVdso(proc = '/proc'): Uint8Array | undefined {
  const maps = readFileSync(`${proc}/self/maps`, 'latin1');
  const match = /^([0-9a-f]+)-([0-9a-f]+) r.x. .*\[vdso\]$/m.exec(maps);
  if (!match) return undefined;
  const start = Number.parseInt(match[1]!, 16);
  const size = Number.parseInt(match[2]!, 16) - start;
  if (size > MAX_VDSO_BYTES) return undefined;
  const fd = openSync(`${proc}/self/mem`, 'r');
  try {
    const bytes = new Uint8Array(size);
    const read = readSync(fd, bytes, 0, size, start);
    return read === size ? bytes : undefined;
  } finally {
    closeSync(fd);
  }
}
