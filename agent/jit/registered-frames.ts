/**
 * Unwind information that a JIT has put into memory and registered with its process's unwinder (`__register_frame`), as
 * LLVM does for numba, Julia and PostgreSQL. The unwinders' own lists have no names and change with each of their versions,
 * so it is looked for as what it is: a CIE, and FDEs behind it. Whether these are about the code in question is decided
 * where they are parsed, in a worker.
 */

/** A piece of memory. */
export interface MemoryPart {
  start: number;
  bytes: Buffer;
}

/** ID 0, version 1 or 3, and the augmentations of compilers: none, or one that says how addresses are written. */
const CIE_STARTS = [
  [0, 0, 0, 0, 1, 0x7a],
  [0, 0, 0, 0, 3, 0x7a],
  [0, 0, 0, 0, 1, 0, 1, 0x78],
  [0, 0, 0, 0, 3, 0, 1, 0x78],
].map((bytes) => Buffer.from(bytes));
const MAX_CIE_BYTES = 64;
const MAX_RECORD_BYTES = 1 << 20;
const MAX_LISTS = 4096;
/** A record that stands for `bytes` which are none: a CIE that no FDE names. */
const LEAST_FILLING_BYTES = 8;

/** Lists of records, ascending, as parts of the memory that they were found in. */
export function findFrameLists({ start, bytes }: MemoryPart): MemoryPart[] {
  const lists: MemoryPart[] = [];
  for (let at = nextCie(bytes, 0); at >= 0 && lists.length < MAX_LISTS; ) {
    const end = endOfList(bytes, at);
    lists.push({ start: start + at, bytes: bytes.subarray(at, end) });
    at = nextCie(bytes, Math.max(end, at + 4));
  }
  return lists;
}

function nextCie(bytes: Buffer, from: number): number {
  let first = -1;
  for (const pattern of CIE_STARTS) {
    for (let at = bytes.indexOf(pattern, from + 4); at >= 0; at = bytes.indexOf(pattern, at + 1)) {
      if (first >= 0 && at - 4 >= first) break;
      if (!isLength(bytes.readUInt32LE(at - 4), MAX_CIE_BYTES)) continue;
      first = at - 4;
      break;
    }
  }
  return first;
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

/** The lists as one, with records in between that say nothing. They are ascending, and not too far apart. */
export function joinLists(lists: readonly MemoryPart[]): MemoryPart {
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
  return { start, bytes };
}
