/** Room for what was made of a file, so that it need not stay in memory: written once, read back in parts. */
import { type ByteSource, bufferSource } from '../elf/source.ts';

export interface Scratch {
  /** Whether it takes up no memory. */
  readonly isOutside: boolean;
  /** The bytes as they are now, to be read from then on; memory where there is no other room. */
  store(bytes: Uint8Array): ByteSource;
}

export const IN_MEMORY: Scratch = { isOutside: false, store: bufferSource };

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

const align = (bytes: number): number => (bytes + 7) & ~7;
