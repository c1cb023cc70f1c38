/**
 * Rules of code that nothing describes, made of the code itself. Every file begins with some: the functions
 * around a program's start, `_init` and `_fini`, and `main` of a Rust program that aborts on panic. Some have nothing
 * else: musl, and what was built with -fno-asynchronous-unwind-tables.
 */

import { OutOfBounds } from '../../../common/base/byte-source.ts';
import { Cursor } from '../../../common/base/cursor.ts';
import {
  ElfError,
  type ElfFile,
  type Machine,
  PF_X,
  PT_LOAD,
  SHF_EXECINSTR,
  SHT_DYNSYM,
  SHT_NOBITS,
  SHT_SYMTAB,
} from '../../../common/elf/elf.ts';
import { coverage } from '../rules/flatten-functions.ts';
import type { CodeRange } from '../rules/gaps.ts';
import type { FunctionRows } from '../rules/rows.ts';
import type { RuleTable } from '../rules/rules.ts';
import { AARCH64 } from './arm64-frame.ts';
import type { Processor } from './code-reader.ts';
import { X86_64 } from './frame-state.ts';
import { CodeWalk, type ReadCode } from './walk.ts';

export const PROCESSORS: Readonly<Record<Machine, Processor>> = { x86_64: X86_64, aarch64: AARCH64 };
/** musl has 101,000, and the assembly of libdav1d 190,000; what is beyond stays without rules. */
const MAX_INSTRUCTIONS = 300_000;
const MAX_GUESSES = 300_000;
const MAX_STARTS = 50_000;
const MAX_SYMBOLS_BYTES = 4 << 20;
const SYMBOL_BYTES = 24;
const STB_GLOBAL = 1;
const STT_NOTYPE = 0;
const STT_FUNC = 2;
const CHUNK_BYTES = 64 << 10;
/** A piece reaches this far into the next one, so that every instruction lies in one. */
const OVERLAP_BYTES = 16;
const MAX_CHUNKS = 64;
const MAX_CODE_SECTIONS = 64;

/** Adds rows for code that no function so far covers, most of all in the gaps. */
export function addCode(
  elf: ElfFile,
  rows: FunctionRows,
  rules: RuleTable,
  gaps: readonly CodeRange[],
): void {
  try {
    const covered = coverage(rows);
    const options = {
      covered,
      maxInstructions: MAX_INSTRUCTIONS,
      maxGuesses: MAX_GUESSES,
      maxStarts: MAX_STARTS,
    };
    const walk = new CodeWalk(PROCESSORS[elf.machine], codeReader(elf), options);
    if (elf.entry !== 0) walk.addEntry(elf.entry);
    for (const name of ['.init', '.fini']) {
      const section = elf.section(name);
      if (section && section.flags & SHF_EXECINSTR) walk.addStart(section.addr, true);
    }
    if (gaps.length > 0)
      for (const start of functionSymbols(elf)) if (liesIn(gaps, start)) walk.addStart(start);
    walk.run();
    for (const { start, end } of gaps) walk.sweep(start, end);
    addRows(walk, rows, rules);
  } catch (error) {
    // cut short, or not to be decompressed: these functions stay without rules
    if (!(error instanceof OutOfBounds || error instanceof ElfError)) throw error;
  }
}

function liesIn(gaps: readonly CodeRange[], address: number): boolean {
  let low = 0;
  for (let high = gaps.length; low < high; ) {
    const middle = (low + high) >> 1;
    if (gaps[middle]!.end <= address) low = middle + 1;
    else high = middle;
  }
  return low < gaps.length && gaps[low]!.start <= address;
}

/** A segment of code may hold constants as well; where sections are known, they tell. */
function findCode(elf: ElfFile): { addr: number; offset: number; size: number }[] {
  const sections = elf.sections.filter(({ type, flags }) => flags & SHF_EXECINSTR && type !== SHT_NOBITS);
  if (sections.length > 0) return sections.slice(0, MAX_CODE_SECTIONS);
  return elf.segments
    .filter(({ type, flags }) => type === PT_LOAD && flags & PF_X)
    .map(({ vaddr, offset, filesz }) => ({ addr: vaddr, offset, size: filesz }));
}

/** Reads the file in pieces, and keeps the last few. */
function codeReader(elf: ElfFile): ReadCode {
  const code = findCode(elf);
  const chunks = new Map<number, { start: number; bytes: Uint8Array }>();
  return (address) => {
    const part = code.find(({ addr, size }) => address >= addr && address < addr + size);
    if (!part) return undefined;
    const at = Math.floor((address - part.addr) / CHUNK_BYTES) * CHUNK_BYTES;
    const start = part.addr + at;
    let chunk = chunks.get(start);
    if (!chunk) {
      if (chunks.size >= MAX_CHUNKS) chunks.clear();
      const size = Math.min(CHUNK_BYTES + OVERLAP_BYTES, part.size - at);
      chunk = { start, bytes: elf.source.read(part.offset + at, size) };
      chunks.set(start, chunk);
    }
    return chunk;
  };
}

/** Assembly leaves the type out. Its local labels are everywhere, its global ones where functions begin. */
const isFunction = (info: number): boolean =>
  (info & 0xf) === STT_FUNC || ((info & 0xf) === STT_NOTYPE && info >> 4 === STB_GLOBAL);

function* functionSymbols(elf: ElfFile): Iterable<number> {
  for (const section of elf.sections) {
    const isTable = section.type === SHT_SYMTAB || section.type === SHT_DYNSYM;
    if (!isTable || section.size > MAX_SYMBOLS_BYTES) continue;
    const cursor = new Cursor(elf.sectionData(section));
    for (let at = 0; at + SYMBOL_BYTES <= cursor.end; at += SYMBOL_BYTES) {
      cursor.at = at + 4;
      const info = cursor.u8();
      cursor.skip(1);
      const section = cursor.u16();
      const value = cursor.u64();
      if (isFunction(info) && section !== 0 && value > 0) yield value;
    }
  }
}

/** Code without gaps becomes one function. */
function addRows(walk: CodeWalk, rows: FunctionRows, rules: RuleTable): void {
  let pending: { address: number; rule: number }[] = [];
  let end = 0;
  const flush = (): void => {
    if (pending.length === 0) return;
    rows.beginFunction(pending[0]!.address, end);
    for (const { address, rule } of pending) rows.addRow(address, rule);
    rows.endFunction();
    pending = [];
  };
  for (const { address, length, state } of walk.instructions()) {
    if (address !== end) flush();
    const rule = rules.intern(state.toRule());
    if (pending.at(-1)?.rule !== rule) pending.push({ address, rule });
    end = address + length;
  }
  flush();
}
