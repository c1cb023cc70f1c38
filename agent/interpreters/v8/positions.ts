/**
 * V8's position tables: from an offset in code (bytecode or machine code) to a place in the source, and to the
 * inlined functions that it belongs to. Format: V8's src/codegen/source-position-table.cc and source-position.h.
 */

/** A SourcePosition: where in the script, and which inlining it belongs to. */
export interface Position {
  /** Offset in the script in characters, -1 if unknown. */
  offset: number;
  /** Index of the inlining, -1 for the function itself. */
  inlining: number;
}

export const UNKNOWN: Position = { offset: -1, inlining: -1 };
const MAX_VLQ_BYTES = 8;

/** Numbers of 7 bits a byte, the low ones first; the top bit says that more follow. Positions take 47 bits. */
class VlqReader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get atEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  unsigned(): number {
    let value = 0;
    let scale = 1;
    for (let i = 0; i < MAX_VLQ_BYTES && this.#at < this.#bytes.length; i++) {
      const byte = this.#bytes[this.#at++]!;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) break;
      scale *= 128;
    }
    return value;
  }

  /** Zig-zag: the lowest bit is the sign. */
  signed(): number {
    const value = this.unsigned();
    return value % 2 === 1 ? -(value - 1) / 2 - 1 : value / 2;
  }
}

/** How many: 2 from V8 14.0 on (Node 25), 3 from 14.9 on (Deno 2.8; 14.7 has 2). 0: the sign is used as one. */
export type PositionFlags = 0 | 2 | 3;

/**
 * Walks a table. Entries are differences: of the code offset, from 14.0 on with flags below it (bit 0: statement),
 * before that negative ones (-n - 1) for expressions; and of the position. It makes no object an entry: a table has
 * thousands, and each frame looks for one.
 */
class PositionReader {
  readonly #reader: VlqReader;
  readonly #flags: PositionFlags;
  /** Offset in the code from which on the position holds; -1 for the function's entry. */
  code = -1;
  /** Where a statement begins, else an expression. */
  isStatement = false;
  #raw = 0;

  constructor(table: Uint8Array, flags: PositionFlags) {
    this.#reader = new VlqReader(table);
    this.#flags = flags;
  }

  /** To the next entry; false if there is none. */
  next(): boolean {
    if (this.#reader.atEnd) return false;
    const first = this.#flags > 0 ? this.#reader.unsigned() : this.#reader.signed();
    this.isStatement = this.#flags > 0 ? first % 2 === 1 : first >= 0;
    this.code += this.#flags > 0 ? Math.floor(first / 2 ** this.#flags) : first < 0 ? -first - 1 : first;
    this.#raw += this.#reader.signed();
    return true;
  }

  get raw(): number {
    return this.#raw;
  }

  get position(): Position {
    return toPosition(this.#raw);
  }
}

/** An entry of a position table. */
export type PositionEntry = Readonly<Pick<PositionReader, 'code' | 'position' | 'isStatement'>>;

export function readPositions(table: Uint8Array, flags: PositionFlags): PositionEntry[] {
  const entries: PositionEntry[] = [];
  const reader = new PositionReader(table, flags);
  while (reader.next())
    entries.push({ code: reader.code, position: reader.position, isStatement: reader.isStatement });
  return entries;
}

const toPosition = (raw: number): Position => (raw < 0 ? UNKNOWN : decodePosition(raw));

/** The position of the last entry at or before `codeOffset`. */
export function findPosition(table: Uint8Array, codeOffset: number, flags: PositionFlags): Position {
  const entries = new PositionReader(table, flags);
  let raw = -1;
  while (entries.next() && entries.code <= codeOffset) raw = entries.raw;
  return toPosition(raw);
}

/** Bits 1 to 30: offset + 1; 31 to 46: inlining + 1. Bit 0 marks positions in no script. */
export function decodePosition(raw: number): Position {
  const inlining = (Math.floor(raw / 2 ** 31) & 0xffff) - 1;
  const offset = raw % 2 === 1 ? -1 : (Math.floor(raw / 2) & 0x3fff_ffff) - 1;
  return { offset, inlining };
}

export interface Inlining {
  /** Where the function was called. */
  caller: Position;
  /** Index into the literals of the code, -1 for the outer function. */
  literal: number;
}

const INLINING_BYTES = 16;

/** The first `count` inlinings, or as many as there are: {u64 position, i32 literal, padding} each. */
export function readInlinings(table: Uint8Array, count: number): Inlining[] {
  const view = new DataView(table.buffer, table.byteOffset, table.length);
  const length = Math.min(count, Math.floor(table.length / INLINING_BYTES));
  return Array.from({ length: Math.max(length, 0) }, (_, index) => {
    const at = index * INLINING_BYTES;
    return {
      caller: decodePosition(view.getUint32(at + 4, true) * 2 ** 32 + view.getUint32(at, true)),
      literal: view.getInt32(at + 8, true),
    };
  });
}

/**
 * Baseline code keeps the length of each bytecode's machine code, in the order of the bytecodes. The index of the
 * bytecode (not its offset) that `codeOffset` lies in, -1 for the prologue, whose length comes first.
 */
export function findBytecodeIndex(table: Uint8Array, codeOffset: number): number {
  const reader = new VlqReader(table);
  let end = 0;
  let index = -2;
  while (!reader.atEnd && end <= codeOffset) {
    end += reader.unsigned();
    index++;
  }
  return index;
}
