/**
 * The symbols for the dynamic linker, as sections, of a file whose section headers are gone: stripped (sstrip), or of an
 * image that was copied out of memory. PT_DYNAMIC says where they are, and a hash table how many (System V ABI, chapter
 * 5; GNU's hash table: https://sourceware.org/ml/binutils/2006-10/msg00377.html). Nothing of it is believed unless the
 * hash table is that of these very names, and all lies where the program can't write.
 */

import { type ByteSource, OutOfBounds } from '../base/byte-source.ts';
import { Cursor } from '../base/cursor.ts';
import type { Section, Segment } from './headers.ts';

const [PT_LOAD, PT_DYNAMIC, PF_W, SHT_STRTAB, SHT_DYNSYM, SHF_ALLOC] = [1, 2, 2, 3, 11, 2];
const [DT_NULL, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_GNU_HASH] = [0, 4, 5, 6, 10, 0x6ffffef5];
const SYMBOL_BYTES = 24;
const MAX_DYNAMIC_BYTES = 64 << 10;
const MAX_SYMBOLS = 1 << 20;
const MAX_STRINGS_BYTES = 64 << 20;

class Contradiction extends Error {
  override readonly name = 'Contradiction';
}

interface Tables {
  source: ByteSource;
  symbols: { offset: number; address: number };
  /** Names, NUL after each. */
  strings: Uint8Array;
  stringsAt: { offset: number; address: number };
}

/** `.dynsym` and `.dynstr` behind a null section; empty where there are none, or they contradict each other. */
export function readDynamicSections(source: ByteSource, segments: readonly Segment[]): Section[] {
  try {
    return find(source, segments);
  } catch (error) {
    if (error instanceof OutOfBounds || error instanceof Contradiction) return [];
    throw error;
  }
}

function find(source: ByteSource, segments: readonly Segment[]): Section[] {
  const dynamic = segments.find(({ type }) => type === PT_DYNAMIC);
  if (!dynamic) return [];
  const tags = readTags(source, dynamic);
  const [symtab, strtab, size] = [tags.get(DT_SYMTAB), tags.get(DT_STRTAB), tags.get(DT_STRSZ)];
  const hash = tags.get(DT_GNU_HASH) ?? tags.get(DT_HASH);
  if (symtab === undefined || strtab === undefined || hash === undefined) return [];
  if (size === undefined || size > MAX_STRINGS_BYTES) return [];
  const place = (address: number) => ({ address, offset: toOffset(segments, address) });
  const stringsAt = place(strtab);
  const strings = source.read(stringsAt.offset, size);
  const tables = { source, symbols: place(symtab), strings, stringsAt };
  const hashAt = toOffset(segments, hash);
  const count = tags.has(DT_GNU_HASH) ? countByGnuHash(tables, hashAt) : countByHash(tables, hashAt);
  return [
    toSection('', 0, { offset: 0, address: 0 }, 0),
    { ...toSection('.dynsym', SHT_DYNSYM, tables.symbols, count * SYMBOL_BYTES), link: 2, entsize: 24 },
    toSection('.dynstr', SHT_STRTAB, stringsAt, size),
  ];
}

const toSection = (
  name: string,
  type: number,
  { offset, address }: { offset: number; address: number },
  size: number,
): Section => ({
  name,
  type,
  flags: type === 0 ? 0 : SHF_ALLOC,
  addr: address,
  offset,
  size,
  link: 0,
  entsize: 0,
});

function readTags(source: ByteSource, { offset, filesz }: Segment): Map<number, number> {
  const bytes = source.read(offset, Math.min(filesz, MAX_DYNAMIC_BYTES));
  const cursor = new Cursor(bytes);
  const tags = new Map<number, number>();
  while (cursor.left >= 16) {
    const tag = cursor.u64();
    const value = cursor.u64();
    if (tag === DT_NULL) break;
    if (!tags.has(tag)) tags.set(tag, value);
  }
  return tags;
}

function toOffset(segments: readonly Segment[], address: number): number {
  const segment = segments.find(
    (s) => s.type === PT_LOAD && address >= s.vaddr && address < s.vaddr + s.filesz,
  );
  if (!segment || segment.flags & PF_W) throw new Contradiction('a dynamic symbol table in writable memory');
  return segment.offset + (address - segment.vaddr);
}

/** Buckets lead to chains of hashes, one a symbol; the last of a chain is odd. */
function countByGnuHash(tables: Tables, at: number): number {
  const head = new Cursor(tables.source.read(at, 16));
  const [bucketCount, first, bloomWords] = [head.u32(), head.u32(), head.u32()];
  if (bucketCount > MAX_SYMBOLS || bloomWords > MAX_SYMBOLS)
    throw new Contradiction('a hash table too large');
  const bucketsAt = at + 16 + bloomWords * 8;
  const buckets = new Cursor(tables.source.read(bucketsAt, bucketCount * 4));
  let last = 0;
  for (let i = 0; i < bucketCount; i++) last = Math.max(last, buckets.u32());
  if (last < first) return first;
  if (last - first > MAX_SYMBOLS) throw new Contradiction('too many dynamic symbols');
  const chainsAt = bucketsAt + bucketCount * 4;
  let count = last + 1;
  while (!isOdd(tables.source, chainsAt + (count - 1 - first) * 4)) {
    if (++count - first > MAX_SYMBOLS) throw new Contradiction('too many dynamic symbols');
  }
  const chains = new Cursor(tables.source.read(chainsAt, (count - first) * 4));
  check(tables, first, count, (name) => (chains.u32() | 1) === (gnuHash(name) | 1));
  return count;
}

const isOdd = (source: ByteSource, at: number): boolean => (source.read(at, 1)[0]! & 1) === 1;

/** One chain a bucket, through the numbers of symbols. Says less of the names than GNU's, which comes first. */
function countByHash(tables: Tables, at: number): number {
  const head = new Cursor(tables.source.read(at, 8));
  const [bucketCount, count] = [head.u32(), head.u32()];
  if (bucketCount === 0 || bucketCount > MAX_SYMBOLS || count > MAX_SYMBOLS)
    throw new Contradiction('a hash table too large');
  const words = new Cursor(tables.source.read(at + 8, (bucketCount + count) * 4));
  const table = Uint32Array.from({ length: bucketCount + count }, () => words.u32());
  const bucketOf = new Int32Array(count).fill(-1);
  for (let bucket = 0; bucket < bucketCount; bucket++)
    for (let i = table[bucket]!; i > 0 && i < count && bucketOf[i] === -1; i = table[bucketCount + i]!)
      bucketOf[i] = bucket;
  let next = 1;
  // local symbols are in none
  check(tables, 1, count, (name) => {
    const bucket = bucketOf[next++]!;
    return bucket === -1 || sysvHash(name) % bucketCount === bucket;
  });
  return count;
}

function check(
  { source, symbols, strings }: Tables,
  first: number,
  count: number,
  isRight: (name: Uint8Array) => boolean,
): void {
  const entries = new Cursor(
    source.read(symbols.offset + first * SYMBOL_BYTES, (count - first) * SYMBOL_BYTES),
  );
  for (let i = first; i < count; i++) {
    const nameAt = entries.u32();
    entries.skip(SYMBOL_BYTES - 4);
    const end = strings.indexOf(0, nameAt);
    if (end < 0 || !isRight(strings.subarray(nameAt, end)))
      throw new Contradiction(`the hash table has another name for dynamic symbol ${i}`);
  }
}

function gnuHash(name: Uint8Array): number {
  let hash = 5381;
  for (const byte of name) hash = (Math.imul(hash, 33) + byte) >>> 0;
  return hash;
}

function sysvHash(name: Uint8Array): number {
  let hash = 0;
  for (const byte of name) {
    hash = ((hash << 4) + byte) >>> 0;
    const high = hash & 0xf0000000;
    hash = (hash ^ (high >>> 24)) & ~high;
  }
  return hash >>> 0;
}
