/**
 * Reads the function symbols of an ELF file from .symtab and .dynsym. Format: System V ABI, chapter 4, "Symbol
 * Table": 24 bytes an entry of name, info (binding << 4 | type), other, section, value, size.
 */
import { ElfError, type ElfFile, type Section, SHF_EXECINSTR, SHT_DYNSYM, SHT_SYMTAB } from '../elf/elf.ts';
import { OutOfBounds } from '../elf/source.ts';
import { findCodeRange, readCodeRanges } from './code-ranges.ts';
import { BIND_GLOBAL, BIND_LOCAL, BIND_WEAK, compareAliases, NameColumn } from './name-column.ts';
import { addPltSymbols } from './plt-symbols.ts';
import { forEachEntry, readStrings, readU64 } from './section-entries.ts';
import { SymbolCandidates } from './symbol-candidates.ts';
import { type SymbolColumns, SymbolTable } from './symbol-table.ts';

const ENTRY_BYTES = 24;
const STT_NOTYPE = 0;
const STT_FUNC = 2;
const STT_GNU_IFUNC = 10;
const STB_LOCAL = 0;
const STB_WEAK = 2;
const SHN_UNDEF = 0;
const SHN_ABS = 0xfff1;
const SHN_COMMON = 0xfff2;
const MAX_ENTRIES = 1 << 24;
const PACK = 2 ** 21;

/**
 * Functions, sized labels in code and exported labels without a size (`_start` of hand-written assembly), each
 * address once with its most public name. A table that can't be read is left out; the result may be empty.
 */
export function readSymbolTable(elf: ElfFile): SymbolTable {
  const candidates = new SymbolCandidates(readCodeRanges(elf));
  for (const section of elf.sections) {
    if (section.type !== SHT_SYMTAB && section.type !== SHT_DYNSYM) continue;
    ignoreDamage(candidates, () => addSymbols(elf, section, candidates));
  }
  ignoreDamage(candidates, () => addPltSymbols(elf, candidates));
  return new SymbolTable(settle(candidates), candidates.skipped);
}

/** What was read before the damage stays. */
function ignoreDamage(candidates: SymbolCandidates, read: () => void): void {
  try {
    read();
  } catch (error) {
    if (!(error instanceof OutOfBounds || error instanceof ElfError)) throw error;
    candidates.skipped++;
  }
}

function addSymbols(elf: ElfFile, section: Section, candidates: SymbolCandidates): void {
  const source = candidates.addSource(readStrings(elf, section));
  forEachEntry(elf, section, { entryBytes: ENTRY_BYTES, limit: MAX_ENTRIES }, (view, at) => {
    const info = view.getUint8(at + 4);
    const type = info & 0xf;
    if (type !== STT_FUNC && type !== STT_NOTYPE && type !== STT_GNU_IFUNC) return;
    const index = view.getUint16(at + 6, true);
    if (index === SHN_UNDEF || index === SHN_ABS || index === SHN_COMMON) return;
    const size = readU64(view, at + 16);
    const bind = info >> 4;
    if (type === STT_NOTYPE && (!isCode(elf, index) || (size === 0 && bind === STB_LOCAL))) return;
    candidates.add(readU64(view, at + 8), size, publicity(bind), source, view.getUint32(at, true));
  });
}

const publicity = (bind: number): number =>
  bind === STB_LOCAL ? BIND_LOCAL : bind === STB_WEAK ? BIND_WEAK : BIND_GLOBAL;

/** Labels without a type may be data; an index past the table (SHN_XINDEX) leaves it to the code ranges. */
function isCode(elf: ElfFile, sectionIndex: number): boolean {
  const section = elf.sections[sectionIndex];
  return section === undefined || (section.flags & SHF_EXECINSTR) !== 0;
}

/** Sorts, keeps the best of each address, gives sizes to those without, and finds what nests in what. */
function settle(c: SymbolCandidates): SymbolColumns {
  const order = chooseSymbols(c);
  const columns: SymbolColumns = {
    base: c.base,
    starts: new Uint32Array(order.length),
    sizes: new Uint32Array(order.length),
    parents: new Int32Array(order.length),
    nameStarts: new Uint32Array(order.length + 1),
    names: new NameColumn(),
  };
  const open: number[] = [];
  let count = 0;
  for (let k = 0; k < order.length; k++) {
    const i = order[k]!;
    const start = c.starts[i]!;
    while (open.length > 0 && endOf(columns, open.at(-1)!) <= start) open.pop();
    let size = c.sizes[i]!;
    if (size === 0) {
      // A label inside a function of known size is no function.
      if (open.length > 0) continue;
      size = spaceBehind(c, start, order[k + 1]);
    }
    columns.starts[count] = start;
    columns.sizes[count] = size;
    columns.parents[count] = open.at(-1) ?? -1;
    const name = c.alias(i);
    columns.names.append(name.bytes, name.start, name.end);
    columns.nameStarts[count + 1] = columns.names.length;
    open.push(count++);
  }
  return shrink(columns, count);
}

const endOf = (columns: SymbolColumns, i: number): number => columns.starts[i]! + columns.sizes[i]!;

/** Bytes to the next symbol, or to the end of the section. */
function spaceBehind(c: SymbolCandidates, start: number, next: number | undefined): number {
  const address = c.base + start;
  const toEnd = findCodeRange(c.ranges, address)!.end - address;
  return next === undefined ? toEnd : Math.min(toEnd, c.starts[next]! - start);
}

function shrink(columns: SymbolColumns, count: number): SymbolColumns {
  columns.names.trim();
  if (count === columns.starts.length) return columns;
  return {
    ...columns,
    starts: columns.starts.slice(0, count),
    sizes: columns.sizes.slice(0, count),
    parents: columns.parents.slice(0, count),
    nameStarts: columns.nameStarts.slice(0, count + 1),
  };
}

/** Indices by ascending start, one an address: the largest, and of those the one with the most public name. */
function chooseSymbols(c: SymbolCandidates): Uint32Array {
  // Sorting doubles needs no comparator, which is many times faster for a million of them.
  const keys = new Float64Array(c.count);
  for (let i = 0; i < c.count; i++) keys[i] = c.starts[i]! * PACK + i;
  keys.sort();
  const order = new Uint32Array(c.count);
  let count = 0;
  for (const key of keys) {
    const i = key % PACK;
    const last = count > 0 ? order[count - 1]! : -1;
    if (last < 0 || c.starts[last] !== c.starts[i]) order[count++] = i;
    else if (compare(c, i, last) < 0) order[count - 1] = i;
  }
  return order.subarray(0, count);
}

function compare(c: SymbolCandidates, i: number, j: number): number {
  return c.sizes[j]! - c.sizes[i]! || compareAliases(c.alias(i), c.alias(j));
}
