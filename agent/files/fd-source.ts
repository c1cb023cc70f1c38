import { fstatSync, readSync } from 'node:fs';
import { type ByteSource, OutOfBounds } from '../../common/base/byte-source.ts';

/** An open file. */
export function fdSource(fd: number): ByteSource {
  const { size } = fstatSync(fd);
  return {
    size,
    read(offset, length) {
      if (!(offset >= 0 && length >= 0 && offset + length <= size)) {
        throw new OutOfBounds(`${length} bytes at ${offset} of ${size}`);
      }
      const bytes = new Uint8Array(length);
      let done = 0;
      while (done < length) {
        const n = readSync(fd, bytes, done, length - done, offset + done);
        // it was cut short since
        if (n === 0) throw new OutOfBounds(`${length} bytes at ${offset}: the file ends at ${offset + done}`);
        done += n;
      }
      return bytes;
    },
  };
}
