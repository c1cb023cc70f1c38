/** A tar archive of a few small files (POSIX ustar). */

export interface TarFile {
  /** At most 100 bytes. */
  name: string;
  content: Buffer;
}

const BLOCK = 512;

/** @param seconds Unix time of all files */
export function tarOf(files: readonly TarFile[], seconds: number): Buffer {
  const parts = files.flatMap(({ name, content }) => [
    headerOf(name, content.length, seconds),
    content,
    Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK),
  ]);
  return Buffer.concat([...parts, Buffer.alloc(2 * BLOCK)]);
}

function headerOf(name: string, size: number, seconds: number): Buffer {
  if (Buffer.byteLength(name) > 100) throw new RangeError(`${name} is too long a name for an archive`);
  const header = Buffer.alloc(BLOCK);
  const octal = (value: number, length: number): string => `${value.toString(8).padStart(length - 1, '0')}\0`;
  const fields: [offset: number, text: string][] = [
    [0, name],
    [100, octal(0o600, 8)],
    [108, octal(0, 8)],
    [116, octal(0, 8)],
    [124, octal(size, 12)],
    [136, octal(seconds, 12)],
    // the sum is made over blanks in its place
    [148, ' '.repeat(8)],
    [156, '0'],
    [257, 'ustar\x0000'],
  ];
  for (const [offset, text] of fields) header.write(text, offset, 'latin1');
  header.write(name, 0, 'utf8');
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return header;
}
