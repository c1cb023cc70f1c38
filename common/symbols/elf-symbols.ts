/**
 * Reads the function symbols of an ELF file from .symtab and .dynsym. Format: System V ABI, chapter 4, "Symbol
 * Table": 24 bytes an entry of name, info (binding << 4 | type), other, section, value, size.
 */

import { OutOfBounds } from '../base/byte-source.ts';
import { ElfError, type ElfFile, type Section, SHF_EXECINSTR, SHT_DYNSYM, SHT_SYMTAB } from '../elf/elf.ts';
import { findCodeRange, readCodeRanges } from './code-ranges.ts';
import { type FindFunction, functionFinder } from './function-bounds.ts';
import { BIND_GLOBAL, BIND_LOCAL, BIND_WEAK } from './name-column.ts';
import { addPltSymbols } from './plt-symbols.ts';
import { IN_MEMORY, type Scratch } from './scratch.ts';
import { findStrings, forEachEntry, readU64 } from './section-entries.ts';
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
 * The end of the code that runs from a function's start on, before `limit`; undefined where that can't be told. Whoever
 * reads instructions for other reasons has it.
 */
export type FollowCode = (start: number, limit: number) => number | undefined;

export interface SymbolTableOptions {
  scratch?: Scratch;
  /** The file that the symbols were split off from. */
  code?: ElfFile;
  followCode?: FollowCode;
}

/**
 * Functions, sized labels in code and exported labels without a size (`_start` of hand-written assembly), each
 * address once with its most public name. What has no size ends with its function, as call frame information or the code
 * itself has it; else it names its own address alone: code that was stripped of its symbols may lie behind. A table that
 * can't be read is left out; the result may be empty.
 */
export function readSymbolTable(elf: ElfFile, options: SymbolTableOptions = {}): SymbolTable {
  return SymbolTable.find(elf.source, options.scratch ?? IN_MEMORY) ?? makeSymbolTable(elf, options);
}

function makeSymbolTable(
  elf: ElfFile,
  { scratch = IN_MEMORY, code = elf, followCode = () => undefined }: SymbolTableOptions,
): SymbolTable {
  const candidates = new SymbolCandidates(readCodeRanges(elf));
  for (const section of elf.sections) {
    if (section.type !== SHT_SYMTAB && section.type !== SHT_DYNSYM) continue;
    ignoreDamage(candidates, () => addSymbols(elf, section, candidates));
  }
  ignoreDamage(candidates, () => addPltSymbols(elf, candidates));
  const findFunction = functionFinder([...new Set([code, elf])]);
  return SymbolTable.of(
    elf.source,
    settle(candidates, { findFunction, followCode }),
    candidates.skipped,
    scratch,
  );
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
  const { offset, size: bytes } = findStrings(elf, section);
  const source = candidates.addSource({ offset, size: bytes, suffix: '', isOfResolvers: false });
  const resolvers = candidates.addSource({ offset, size: bytes, suffix: '', isOfResolvers: true });
  forEachEntry(elf, section, { entryBytes: ENTRY_BYTES, limit: MAX_ENTRIES }, (view, at) => {
    const info = view.getUint8(at + 4);
    const type = info & 0xf;
    if (type !== STT_FUNC && type !== STT_NOTYPE && type !== STT_GNU_IFUNC) return;
    const index = view.getUint16(at + 6, true);
    if (index === SHN_UNDEF || index === SHN_ABS || index === SHN_COMMON) return;
    const [value, size] = [readU64(view, at + 8), readU64(view, at + 16)];
    const bind = info >> 4;
    if (type === STT_NOTYPE && (!isCode(elf, index) || (size === 0 && bind === STB_LOCAL))) return;
    if (size === 0 && isAtItsEnd(elf, index, value)) return;
    const names = type === STT_GNU_IFUNC ? resolvers : source;
    candidates.add(value, size, publicity(bind), names, view.getUint32(at, true));
  });
}

const publicity = (bind: number): number =>
  bind === STB_LOCAL ? BIND_LOCAL : bind === STB_WEAK ? BIND_WEAK : BIND_GLOBAL;

/** Labels without a type may be data; an index past the table (SHN_XINDEX) leaves it to the code ranges. */
function isCode(elf: ElfFile, sectionIndex: number): boolean {
  const section = elf.sections[sectionIndex];
  return section === undefined || (section.flags & SHF_EXECINSTR) !== 0;
}

/** `etext` and `__stop_NAME` say where a section ends; what the next one begins with is not theirs. */
function isAtItsEnd(elf: ElfFile, sectionIndex: number, value: number): boolean {
  const section = elf.sections[sectionIndex];
  return section !== undefined && value >= section.addr + section.size;
}

/** Sorts, keeps the largest of each address, gives sizes to those without, and finds what nests in what. */
function settle(c: SymbolCandidates, ranges: LabelRanges): SymbolColumns {
  const order = sortCandidates(c);
  const columns = new ColumnWriter(c);
  const open: number[] = [];
  for (let k = 0; k < order.length; ) {
    const start = c.starts[order[k]!]!;
    let next = k;
    let size = 0;
    for (; next < order.length && c.starts[order[next]!] === start; next++)
      size = Math.max(size, c.sizes[order[next]!]!);
    while (open.length > 0 && columns.endOf(open.at(-1)!) <= start) open.pop();
    const isLabel = size === 0;
    // A label inside a function of known size is not a function.
    if (!isLabel || open.length === 0) {
      const bytes = isLabel ? sizeOfLabel(c, start, order[next], ranges) : size;
      open.push(columns.add(start, bytes, open.at(-1) ?? -1));
      for (; k < next; k++) if (c.sizes[order[k]!] === size) columns.addAlias(order[k]!);
    }
    k = next;
  }
  return columns.finish();
}

class ColumnWriter {
  readonly #c: SymbolCandidates;
  readonly #columns: SymbolColumns;
  #count = 0;
  #aliases = 0;

  constructor(c: SymbolCandidates) {
    this.#c = c;
    this.#columns = {
      base: c.base,
      starts: new Uint32Array(c.count),
      sizes: new Uint32Array(c.count),
      parents: new Int32Array(c.count),
      firstAliases: new Uint32Array(c.count + 1),
      nameAts: new Uint32Array(c.count),
      kinds: new Uint8Array(c.count),
      sources: c.sources,
    };
  }

  add(start: number, size: number, parent: number): number {
    const i = this.#count++;
    this.#columns.starts[i] = start;
    this.#columns.sizes[i] = size;
    this.#columns.parents[i] = parent;
    return i;
  }

  /** A name of the last symbol. */
  addAlias(candidate: number): void {
    this.#columns.nameAts[this.#aliases] = this.#c.nameAts[candidate]!;
    this.#columns.kinds[this.#aliases++] = this.#c.kinds[candidate]!;
    this.#columns.firstAliases[this.#count] = this.#aliases;
  }

  endOf(i: number): number {
    return this.#columns.starts[i]! + this.#columns.sizes[i]!;
  }

  finish(): SymbolColumns {
    const { starts, sizes, parents, firstAliases, nameAts, kinds, ...rest } = this.#columns;
    return {
      ...rest,
      starts: starts.slice(0, this.#count),
      sizes: sizes.slice(0, this.#count),
      parents: parents.slice(0, this.#count),
      firstAliases: firstAliases.slice(0, this.#count + 1),
      nameAts: nameAts.slice(0, this.#aliases),
      kinds: kinds.slice(0, this.#aliases),
    };
  }
}

interface LabelRanges {
  findFunction: FindFunction;
  followCode: FollowCode;
}

/** Bytes to the end of its function, or to the next symbol in it; 1 where no function is known. */
function sizeOfLabel(
  c: SymbolCandidates,
  start: number,
  next: number | undefined,
  { findFunction, followCode }: LabelRanges,
): number {
  const address = c.base + start;
  const rangeEnd = findCodeRange(c.ranges, address)!.end;
  const limit = next === undefined ? rangeEnd : Math.min(rangeEnd, c.base + c.starts[next]!);
  const known = findFunction(address);
  const end = known.end ?? followCode(address, Math.min(limit, known.next)) ?? address + 1;
  return Math.max(1, Math.min(end, limit) - address);
}

/** Indices by ascending start, those of equal starts in the order of the file. */
function sortCandidates(c: SymbolCandidates): Uint32Array {
  // Sorting doubles needs no comparator, which is many times faster for a million of them.
  const keys = new Float64Array(c.count);
  for (let i = 0; i < c.count; i++) keys[i] = c.starts[i]! * PACK + i;
  keys.sort();
  return Uint32Array.from(keys, (key) => key % PACK);
}
