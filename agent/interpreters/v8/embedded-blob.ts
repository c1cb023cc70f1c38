/**
 * Where V8's built-in functions are in a file without unwind information and names. V8 links two blobs: the code, and
 * data that describe it (V8's src/snapshot/embedded/embedded-data.h). Part of the data is a table that leads from an
 * offset in the code to the function there: pairs of the offset at which one ends and its number, sorted. Each function
 * ends in at least one byte of padding, which shows the one place in the file's code that the table fits.
 */
import { type ElfFile, PF_X, PT_LOAD } from '../../../common/elf/elf.ts';

const PAIR_BYTES = 8;
const ALIGNMENT = 32;
/** V8 9.4 has 1,600, V8 15.0 has 2,472; they are counted in 12 bits. */
const MIN_FUNCTIONS = 1024;
const MAX_FUNCTIONS = 4096;
const MAX_BLOB_BYTES = 16 << 20;
const PAGE = 4096;
const MAX_PAGES = 1 << 16;
/** Of what looks like a table; of tables, which are looked for in all of the code. */
const MAX_TRIES = 1024;
const MAX_TABLES = 4;
const INT3 = 0xcc;

/** Offset in the file, and bytes; undefined where there is none. `data`: constants of the file. */
export function findEmbeddedBlob(elf: ElfFile, data: Buffer): { start: number; length: number } | undefined {
  for (const ends of findTables(data)) {
    const start = findCode(elf, ends);
    if (start !== undefined) return { start, length: ends.at(-1)! };
  }
  return undefined;
}

/** Offsets at which functions end, of each table that looks like it. */
function* findTables(data: Buffer): Generator<number[]> {
  // a table is at least that long, so one look in that many bytes is enough
  const step = MIN_FUNCTIONS * PAIR_BYTES;
  let [tries, tables] = [0, 0];
  for (let at = 0; at < data.length && tries < MAX_TRIES && tables < MAX_TABLES; at += step) {
    for (const phase of [at, at + 4]) {
      if (!isFollowed(data, phase)) continue;
      tries++;
      const ends = readTable(data, phase);
      if (ends.length < MIN_FUNCTIONS) continue;
      tables++;
      yield ends;
    }
  }
}

function readTable(data: Buffer, within: number): number[] {
  let first = within;
  for (let i = 0; i < MAX_FUNCTIONS && first >= PAIR_BYTES && isFollowed(data, first - PAIR_BYTES); i++)
    first -= PAIR_BYTES;
  const ends = [data.readUInt32LE(first)];
  for (let at = first; isFollowed(data, at) && ends.length < MAX_FUNCTIONS; at += PAIR_BYTES)
    ends.push(data.readUInt32LE(at + PAIR_BYTES));
  return ends;
}

/** Are this pair and the next in order? */
function isFollowed(data: Buffer, at: number): boolean {
  if (at + 2 * PAIR_BYTES > data.length) return false;
  const [end, next] = [data.readUInt32LE(at), data.readUInt32LE(at + PAIR_BYTES)];
  const isPlausible = end > 0 && next > end && next < MAX_BLOB_BYTES && (end | next) % ALIGNMENT === 0;
  return (
    isPlausible &&
    data.readUInt32LE(at + 4) < MAX_FUNCTIONS &&
    data.readUInt32LE(at + PAIR_BYTES + 4) < MAX_FUNCTIONS
  );
}

/** The blob begins with a page, so that V8 can map it a second time. */
function findCode(elf: ElfFile, ends: readonly number[]): number | undefined {
  const length = ends.at(-1)!;
  for (const { type, flags, offset, vaddr, filesz } of elf.segments) {
    if (type !== PT_LOAD || !(flags & PF_X)) continue;
    const last = Math.min(offset + filesz, elf.source.size) - length;
    const first = offset + ((PAGE - (vaddr % PAGE)) % PAGE);
    for (let start = first, i = 0; start <= last && i < MAX_PAGES; start += PAGE, i++)
      if (ends.every((end) => elf.source.read(start + end - 1, 1)[0] === INT3)) return start;
  }
  return undefined;
}
