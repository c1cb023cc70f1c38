/** Files that settings name: of settings, certificates, keys, headers, tokens. */
import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from 'node:fs';

const CHUNK_BYTES = 64 << 10;
/** Major and minor number of /dev/null, by which a file of settings is left out. */
const NULL_DEVICE = (1 << 8) | 3;

/** Never waits: a pipe is refused, and a device, which may never end. Throws what the system says, or a sentence. */
export function readSettingFile(path: string, maxBytes: number): Buffer {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  try {
    if (!isReadable(fstatSync(fd))) throw new Error('it is not a regular file');
    const chunks: Buffer[] = [];
    // files of /proc do not say their size
    for (let left = maxBytes + 1; left > 0; ) {
      const chunk = Buffer.alloc(Math.min(CHUNK_BYTES, left));
      const got = readSync(fd, chunk, 0, chunk.length, null);
      if (got === 0) return Buffer.concat(chunks);
      chunks.push(chunk.subarray(0, got));
      left -= got;
    }
    throw new Error(`it has more than the ${maxBytes} bytes that are read`);
  } finally {
    closeSync(fd);
  }
}

const isReadable = (stats: Stats): boolean =>
  stats.isFile() || (stats.isCharacterDevice() && stats.rdev === NULL_DEVICE);
