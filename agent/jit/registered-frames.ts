/**
 * Unwind information that a JIT has put into memory and registered with its process's unwinder (`__register_frame`), as
 * LLVM does for numba, Julia and PostgreSQL. The unwinders' own lists have no names and change with each of their versions,
 * so it is looked for as what it is: a CIE, and FDEs behind it. Whether these are about the code in question is decided
 * where they are parsed, in a worker.
 */

import type { FrameSection } from '../stack-deltas/sources/frame-section.ts';

/** A piece of memory. */
export interface MemoryPart {
  start: number;
  bytes: Buffer;
}

/** Behind an ID of 0: version 1 or 3, and the augmentations of compilers, none or one that says how addresses are written. */
const CIE_STARTS = [
  [1, 0x7a],
  [3, 0x7a],
  [1, 0, 1, 0x78],
  [3, 0, 1, 0x78],
].map((bytes) => Buffer.from(bytes));
/** Length and ID. */
const HEADER_BYTES = 8;
const MAX_CIE_BYTES = 64;
const MAX_RECORD_BYTES = 1 << 20;
const MAX_LISTS = 4096;
/** A record that stands for `bytes` which are none: a CIE that no FDE names. */
const LEAST_FILLING_BYTES = 8;

/** Lists of records, ascending, as parts of the memory that they were found in. */
export function findFrameLists({ start, bytes }: MemoryPart): MemoryPart[] {
  const lists: MemoryPart[] = [];
  let end = 0;
  for (const at of cies(bytes)) {
    // within the list before
    if (at < end) continue;
    end = endOfList(bytes, at);
    lists.push({ start: start + at, bytes: bytes.subarray(at, end) });
    if (lists.length === MAX_LISTS) break;
  }
  return lists;
}

/** Ascending. Each pattern is searched once through the memory, whatever is in it. */
function* cies(bytes: Buffer): Generator<number> {
  const next = CIE_STARTS.map((pattern) => findFrom(bytes, pattern, HEADER_BYTES));
  for (;;) {
    const first = Math.min(...next);
    if (first === Number.POSITIVE_INFINITY) return;
    const at = first - HEADER_BYTES;
    if (bytes.readUInt32LE(at + 4) === 0 && isLength(bytes.readUInt32LE(at), MAX_CIE_BYTES)) yield at;
    const which = next.indexOf(first);
    next[which] = findFrom(bytes, CIE_STARTS[which]!, first + 1);
  }
}

function findFrom(bytes: Buffer, pattern: Buffer, from: number): number {
  const at = bytes.indexOf(pattern, from);
  return at < 0 ? Number.POSITIVE_INFINITY : at;
}

const isLength = (length: number, max: number): boolean => length >= 8 && length <= max && length % 4 === 0;

/** Behind the last record that is one: FDEs name a CIE of the same list. */
function endOfList(bytes: Buffer, from: number): number {
  let at = from;
  while (at + 8 <= bytes.length) {
    const length = bytes.readUInt32LE(at);
    const id = bytes.readUInt32LE(at + 4);
    const isRecord = isLength(length, MAX_RECORD_BYTES) && at + 4 + length <= bytes.length;
    if (!isRecord || (id !== 0 && at + 4 - id < from)) break;
    at += 4 + length;
  }
  return at;
}

/** The lists as one .eh_frame, with records in between that say nothing. They are ascending, and not too far apart. */
export function joinLists(lists: readonly MemoryPart[]): FrameSection {
  const { start } = lists[0]!;
  const last = lists.at(-1)!;
  const bytes = Buffer.alloc(last.start + last.bytes.length - start);
  let filled = 0;
  for (const list of lists) {
    const at = list.start - start;
    // a gap of four bytes is the zero that ends a list
    if (at - filled >= LEAST_FILLING_BYTES) bytes.writeUInt32LE(at - filled - 4, filled);
    list.bytes.copy(bytes, at);
    filled = at + list.bytes.length;
  }
  return { bytes, address: start, isEhFrame: true };
}
