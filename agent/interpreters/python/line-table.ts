/**
 * From an instruction of a code object to its place in the source. CPython has had three encodings:
 *
 *   3.6 to 3.9   co_lnotab: pairs (bytes of code, lines), both added up; the entry before the instruction holds
 *   3.10         co_linetable: pairs (bytes of code, lines), where a pair describes the code that it adds
 *   from 3.11    the location table: entries of line, end line, column and end column for a run of code units
 *
 * Sources: Objects/lnotab_notes.txt of 3.9 and 3.10, InternalDocs/code_objects.md ("Source code locations") of
 * 3.13. The tables come from other processes: whatever they contain, reading ends with their bytes.
 */

import { OutOfBounds } from '../../../common/base/byte-source.ts';
import { Cursor } from '../../../common/base/cursor.ts';

export interface Place {
  /** 0 where the instruction belongs to no line. */
  line: number;
  /** Counted from 1, in bytes of UTF-8 as CPython counts; 0 if unknown. */
  column: number;
}

export type LineTableKind = 'lnotab' | 'linetable' | 'locations';

export const lineTableKind = (minor: number): LineTableKind =>
  minor <= 9 ? 'lnotab' : minor === 10 ? 'linetable' : 'locations';

const NO_PLACE: Place = { line: 0, column: 0 };

/**
 * The place of the instruction that begins `offset` bytes into the code; `firstLine` is co_firstlineno. A negative
 * offset (a function that has not begun yet) is its first line.
 */
export function findPlace(kind: LineTableKind, table: Uint8Array, firstLine: number, offset: number): Place {
  if (offset < 0) return { line: firstLine, column: 0 };
  try {
    if (kind === 'lnotab') return findInLnotab(table, firstLine, offset);
    if (kind === 'linetable') return findInLineTable(table, firstLine, offset);
    return findInLocations(table, firstLine, offset);
  } catch (error) {
    if (error instanceof OutOfBounds) return NO_PLACE;
    throw error;
  }
}

function findInLnotab(table: Uint8Array, firstLine: number, offset: number): Place {
  const cursor = new Cursor(table);
  let line = firstLine;
  let at = 0;
  while (cursor.left >= 2) {
    at += cursor.u8();
    if (at > offset) break;
    line += cursor.i8();
  }
  return { line, column: 0 };
}

/** A line delta of -128 says that the code has no line. */
function findInLineTable(table: Uint8Array, firstLine: number, offset: number): Place {
  const cursor = new Cursor(table);
  let line = firstLine;
  let end = 0;
  while (cursor.left >= 2) {
    end += cursor.u8();
    const delta = cursor.i8();
    if (delta !== -128) line += delta;
    if (offset < end) return delta === -128 ? NO_PLACE : { line, column: 0 };
  }
  return NO_PLACE;
}

const LONG = 14;
const WITHOUT_COLUMNS = 13;
const WITHOUT_LINE = 15;
const FIRST_ONE_LINE = 10;

function findInLocations(table: Uint8Array, firstLine: number, offset: number): Place {
  const cursor = new Cursor(table);
  let line = firstLine;
  let end = 0;
  while (cursor.left > 0) {
    const first = cursor.u8();
    const code = (first >> 3) & 15;
    // a code unit has two bytes
    end += ((first & 7) + 1) * 2;
    let column = 0;
    if (code === LONG) {
      line += signedVarint(cursor);
      varint(cursor);
      // written plus one, so that 0 means none; that is how it is counted here, too
      column = varint(cursor);
      varint(cursor);
    } else if (code === WITHOUT_COLUMNS) {
      line += signedVarint(cursor);
    } else if (code >= FIRST_ONE_LINE && code < WITHOUT_COLUMNS) {
      line += code - FIRST_ONE_LINE;
      column = cursor.u8() + 1;
      cursor.skip(1);
    } else if (code < FIRST_ONE_LINE) {
      column = ((code << 3) | (cursor.u8() >> 4)) + 1;
    }
    if (offset < end) return code === WITHOUT_LINE ? NO_PLACE : { line, column };
  }
  return NO_PLACE;
}

/** Six bits a byte, least significant first; bit 6 says that another one follows. */
function varint(cursor: Cursor): number {
  let value = 0;
  for (let shift = 0; shift < 30; shift += 6) {
    const byte = cursor.u8();
    value |= (byte & 0x3f) << shift;
    if (!(byte & 0x40)) return value;
  }
  throw new OutOfBounds(`a number of more than 30 bits at ${cursor.at}`);
}

/** The lowest bit is the sign. */
function signedVarint(cursor: Cursor): number {
  const value = varint(cursor);
  return value & 1 ? -(value >>> 1) : value >>> 1;
}
