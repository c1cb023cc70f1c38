/**
 * Room for what was made of a file, so that it need not stay in memory: written once, read back in parts. What has a name
 * may stay for later runs.
 */
import { type ByteSource, bufferSource, partOf } from '../base/byte-source.ts';

export interface Scratch {
  /** Whether it takes up no memory. */
  readonly isOutside: boolean;
  /** The bytes as they are now, to be read from then on; memory where there is no other room. */
  store(bytes: Uint8Array, name?: string): ByteSource;
  /** What was stored under the name for the same file, in an earlier run too. */
  find(name: string): ByteSource | undefined;
}

export const IN_MEMORY: Scratch = { isOutside: false, store: bufferSource, find: () => undefined };

/** Of another file than the one that the room is for; what is made of it has names of its own. */
export const scratchOf = (scratch: Scratch, file: string): Scratch => ({
  get isOutside() {
    return scratch.isOutside;
  },
  store: (bytes, name) => scratch.store(bytes, name && `${file} ${name}`),
  find: (name) => scratch.find(`${file} ${name}`),
});

/** What is made of it stays for this run. */
export const nameless = (scratch: Scratch): Scratch => ({
  get isOutside() {
    return scratch.isOutside;
  },
  store: (bytes) => scratch.store(bytes),
  find: () => undefined,
});

type Column = Float64Array | Uint32Array | Int32Array | Uint16Array;
type ColumnType = new (buffer: ArrayBufferLike, offset: number, length: number) => Column;
type Columns<T extends readonly ColumnType[]> = { [K in keyof T]: InstanceType<T[K]> };

/** The count of each column, then their elements, each column aligned to 8 bytes. */
export function packColumns(columns: readonly Column[]): Uint8Array {
  const header = align(columns.length * 4);
  const bytes = new Uint8Array(columns.reduce((sum, { byteLength }) => sum + align(byteLength), header));
  new Uint32Array(bytes.buffer, 0, columns.length).set(columns.map(({ length }) => length));
  let at = header;
  for (const column of columns) {
    bytes.set(new Uint8Array(column.buffer, column.byteOffset, column.byteLength), at);
    at += align(column.byteLength);
  }
  return bytes;
}

/** What {@link packColumns} packed, of the same types in the same order. */
export function unpackColumns<const T extends readonly (ColumnType & { BYTES_PER_ELEMENT: number })[]>(
  packed: ByteSource,
  types: T,
): Columns<T> {
  const bytes = packed.read(0, packed.size);
  const { buffer, byteOffset } = bytes.byteOffset % 8 === 0 ? bytes : new Uint8Array(bytes);
  const counts = new Uint32Array(buffer, byteOffset, types.length);
  let at = byteOffset + align(types.length * 4);
  return types.map((Type, i) => {
    const column = new Type(buffer, at, counts[i]!);
    at += align(column.byteLength);
    return column;
  }) as Columns<T>;
}

/** Their number and their sizes, then each of them aligned to 8 bytes. */
export function packParts(parts: readonly Uint8Array[]): Uint8Array {
  const header = align(4 + parts.length * 4);
  const bytes = new Uint8Array(parts.reduce((sum, { length }) => sum + align(length), header));
  new Uint32Array(bytes.buffer, 0, 1 + parts.length).set([
    parts.length,
    ...parts.map(({ length }) => length),
  ]);
  let at = header;
  for (const part of parts) {
    bytes.set(part, at);
    at += align(part.length);
  }
  return bytes;
}

/** What {@link packParts} packed, to be read one by one. */
export function unpackParts(packed: ByteSource): ByteSource[] {
  const [count] = readWords(packed, 0, 1);
  let at = align(4 + count! * 4);
  return Array.from(readWords(packed, 4, count!), (size) => {
    const part = partOf(packed, at, size);
    at += align(size);
    return part;
  });
}

const readWords = (source: ByteSource, at: number, count: number): Uint32Array =>
  new Uint32Array(source.read(at, count * 4).slice().buffer);

const align = (bytes: number): number => (bytes + 7) & ~7;
