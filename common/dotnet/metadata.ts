/**
 * Metadata of .NET: tables of types and methods in an assembly, of documents and lines in a portable PDB. The tables are
 * read row by row, so that an assembly's megabytes need not be had. Source: ECMA-335, partition II, chapters 22 and 24;
 * dotnet/runtime, docs/design/specs/PortablePdb-Metadata.md. Sizes and counts come from foreign files or memory: each has
 * a cap, and what contradicts itself throws {@link MalformedMetadata}.
 */
import { rowLayout, type TableSizes } from './metadata-schema.ts';

export class MalformedMetadata extends Error {
  override readonly name = 'MalformedMetadata';
}

/** Bytes from `at` on, counted from the metadata's root: all of them, or it throws. */
export type ReadAt = (at: number, length: number) => DataView;

export const Table = {
  module: 0x00,
  typeDef: 0x02,
  methodDef: 0x06,
  nestedClass: 0x29,
  genericParam: 0x2a,
  document: 0x30,
  methodDebugInformation: 0x31,
  stateMachineMethod: 0x36,
} as const;

/** 'BSJB' */
export const METADATA_SIGNATURE = 0x424a5342;
const TABLES = 64;
const MAX_ROWS = 1 << 24;
const MAX_STREAMS = 16;
const MAX_VERSION_BYTES = 256;
const MAX_STREAM_NAME = 32;
const MAX_NAME_BYTES = 1024;
const STREAM_HEADER_BYTES = 8;
const MODULE_ID = 2;
const GUID_BYTES = 16;

interface Stream {
  at: number;
  size: number;
}

export class Metadata {
  readonly #read: ReadAt;
  readonly #streams: ReadonlyMap<string, Stream>;
  readonly #tables: readonly { at: number; rows: number; rowBytes: number; columns: readonly number[] }[];

  /** `read` may throw errors of its own. */
  constructor(read: ReadAt) {
    this.#read = read;
    this.#streams = readStreams(read);
    this.#tables = readTables(read, this.#streams);
  }

  /** Of the strings: a range from the root. */
  get strings(): Stream {
    return this.#streams.get('#Strings') ?? { at: 0, size: 0 };
  }

  rows(table: number): number {
    return this.#tables[table]?.rows ?? 0;
  }

  /** A column of row `row`, which counts from 1. */
  value(table: number, row: number, column: number): number {
    const layout = this.#tables[table];
    const at = layout?.columns[column];
    if (!layout || at === undefined || !(row >= 1 && row <= layout.rows))
      throw new MalformedMetadata(`row ${row} of table ${table}`);
    const bytes = (layout.columns[column + 1] ?? layout.rowBytes) - at;
    const view = this.#read(layout.at + (row - 1) * layout.rowBytes + at, bytes);
    return bytes === 2 ? view.getUint16(0, true) : view.getUint32(0, true);
  }

  /** The last row in which `column` of a sorted table is at most `value`; 0: none. */
  lastRowUpTo(table: number, column: number, value: number): number {
    let [low, high] = [0, this.rows(table)];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.value(table, middle, column) <= value) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  string(offset: number): string {
    const bytes = this.#heap('#Strings', offset, MAX_NAME_BYTES);
    const end = bytes.indexOf(0);
    return Buffer.from(bytes.buffer, bytes.byteOffset, end < 0 ? bytes.length : end).toString('utf8');
  }

  /** A blob's bytes. */
  blob(offset: number, maxBytes: number): Uint8Array {
    const head = this.#heap('#Blob', offset, 4);
    const { value, length } = compressed(head, 0);
    if (value > maxBytes) throw new MalformedMetadata(`a blob of ${value} bytes`);
    return value === 0 ? new Uint8Array(0) : this.#heap('#Blob', offset + length, value, true);
  }

  /** GUID of the module: another one for each time that it was compiled. */
  moduleId(): Uint8Array {
    const index = this.value(Table.module, 1, MODULE_ID);
    return this.#heap('#GUID', (index - 1) * GUID_BYTES, GUID_BYTES, true);
  }

  /** The bytes of a stream, undefined where it is not there. */
  stream(name: string, maxBytes: number): DataView | undefined {
    const stream = this.#streams.get(name);
    return stream && this.#read(stream.at, Math.min(stream.size, maxBytes));
  }

  #heap(name: string, offset: number, length: number, isWhole = false): Uint8Array {
    const { at, size } = this.#streams.get(name) ?? { at: 0, size: 0 };
    const left = size - offset;
    if (offset < 0 || left <= 0 || (isWhole && left < length))
      throw new MalformedMetadata(`offset ${offset} of ${name}`);
    const view = this.#read(at + offset, Math.min(length, left));
    return new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
  }
}

/** An unsigned number of 1, 2 or 4 bytes. */
export function compressed(bytes: Uint8Array, at: number): { value: number; length: number } {
  const first = bytes[at] ?? 0;
  if (first < 0x80) return { value: first, length: 1 };
  const second = bytes[at + 1] ?? 0;
  if (first < 0xc0) return { value: ((first & 0x3f) << 8) | second, length: 2 };
  const rest = ((bytes[at + 2] ?? 0) << 8) | (bytes[at + 3] ?? 0);
  return { value: ((first & 0x1f) << 24) | (second << 16) | rest, length: 4 };
}

function readStreams(read: ReadAt): Map<string, Stream> {
  const root = read(0, 16);
  if (root.getUint32(0, true) !== METADATA_SIGNATURE) throw new MalformedMetadata('no metadata');
  const version = root.getUint32(12, true);
  if (version > MAX_VERSION_BYTES) throw new MalformedMetadata(`a version of ${version} bytes`);
  let at = 16 + version;
  const count = read(at, 4).getUint16(2, true);
  if (count > MAX_STREAMS) throw new MalformedMetadata(`${count} streams`);
  at += 4;
  const streams = new Map<string, Stream>();
  for (let i = 0; i < count; i++) {
    const header = read(at, STREAM_HEADER_BYTES);
    let name = '';
    for (let k = 0; k < MAX_STREAM_NAME; k++) {
      const letter = read(at + STREAM_HEADER_BYTES + k, 1).getUint8(0);
      if (letter === 0) break;
      name += String.fromCharCode(letter);
    }
    streams.set(name, { at: header.getUint32(0, true), size: header.getUint32(4, true) });
    at += STREAM_HEADER_BYTES + ((name.length + 4) & ~3);
  }
  return streams;
}

function readTables(read: ReadAt, streams: ReadonlyMap<string, Stream>) {
  const stream = streams.get('#~') ?? streams.get('#-');
  if (!stream) throw new MalformedMetadata('no tables');
  const header = read(stream.at, 24);
  const valid = [header.getUint32(8, true), header.getUint32(12, true)] as const;
  const rows = new Array<number>(TABLES).fill(0);
  let at = stream.at + 24;
  for (let table = 0; table < TABLES; table++) {
    if ((valid[table >> 5]! & (1 << (table & 31))) === 0) continue;
    rows[table] = read(at, 4).getUint32(0, true);
    if (rows[table]! > MAX_ROWS) throw new MalformedMetadata(`${rows[table]} rows in table ${table}`);
    at += 4;
  }
  const sizes: TableSizes = { heapSizes: header.getUint8(6), rows: rowsOfAll(read, streams, rows) };
  return rows.map((count, table) => {
    const { columns, rowBytes } = rowLayout(table, sizes);
    const layout = { at, rows: count, rowBytes, columns };
    at += count * rowBytes;
    return layout;
  });
}

/** A PDB says how many rows the assembly's tables have, which its own refer to. */
function rowsOfAll(read: ReadAt, streams: ReadonlyMap<string, Stream>, rows: readonly number[]): number[] {
  const pdb = streams.get('#Pdb');
  if (!pdb || pdb.size < 32) return [...rows];
  const all = [...rows];
  const referred = read(pdb.at + 24, 8);
  const mask = [referred.getUint32(0, true), referred.getUint32(4, true)] as const;
  let at = pdb.at + 32;
  for (let table = 0; table < TABLES; table++) {
    if ((mask[table >> 5]! & (1 << (table & 31))) === 0) continue;
    all[table] = read(at, 4).getUint32(0, true);
    at += 4;
  }
  return all;
}
