import { read } from 'node:fs';
import { promisify } from 'node:util';
import type { FileId } from '../../../common/base/brand.ts';
import { OutOfBounds } from '../../../common/base/byte-source.ts';
import { computeFileId } from '../../../common/elf/file-id.ts';

const EDGE_BYTES = 4096;
const readAsync = promisify(read);

/** The file ID of an open file, without blocking; throws OutOfBounds where it was truncated since. */
export async function readFileId(fd: number, size: number): Promise<FileId> {
  const length = Math.min(EDGE_BYTES, size);
  const [head, tail] = await Promise.all([
    readExactly(fd, 0, length),
    readExactly(fd, size - length, length),
  ]);
  return computeFileId({ size, read: (offset) => (offset === 0 ? head : tail) });
}

async function readExactly(fd: number, offset: number, length: number): Promise<Uint8Array> {
  const bytes = Buffer.alloc(length);
  let used = 0;
  while (used < length) {
    const { bytesRead } = await readAsync(fd, bytes, used, length - used, offset + used);
    if (bytesRead === 0) throw new OutOfBounds(`the file was truncated to ${offset + used} bytes`);
    used += bytesRead;
  }
  return bytes;
}
