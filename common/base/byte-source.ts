/** Bytes that a parser reads on demand: a file, a mapping of a live process, an upload. Parsers do no I/O. */
export interface ByteSource {
  /** Total bytes. */
  readonly size: number;
  /** Exactly `length` bytes from `offset`; throws {@link OutOfBounds} where the source ends earlier. */
  read(offset: number, length: number): Uint8Array;
}

/** Input refers to bytes that do not exist. */
export class OutOfBounds extends Error {
  override readonly name = 'OutOfBounds';
}

export function bufferSource(bytes: Uint8Array): ByteSource {
  return {
    size: bytes.length,
    read(offset, length) {
      if (!(offset >= 0 && length >= 0 && offset + length <= bytes.length)) {
        throw new OutOfBounds(`${length} bytes at ${offset} of ${bytes.length}`);
      }
      return bytes.subarray(offset, offset + length);
    },
  };
}

/** `size` bytes of a source, from `at` on. */
export const partOf = (source: ByteSource, at: number, size: number): ByteSource => ({
  size,
  read(offset, length) {
    if (!(offset >= 0 && length >= 0 && offset + length <= size))
      throw new OutOfBounds(`${length} bytes at ${offset} of ${size}`);
    return source.read(at + offset, length);
  },
});
