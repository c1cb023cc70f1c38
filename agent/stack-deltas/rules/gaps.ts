/** Code that no function so far describes. */
import { type ElfFile, PF_X, PT_LOAD, SHF_EXECINSTR } from '../../../common/elf/elf.ts';
import type { FunctionRows } from './rows.ts';

/** ELF virtual addresses, [start, end). */
export interface CodeRange {
  start: number;
  end: number;
}

/** Described by the linker, or read instruction by instruction: not what a compiler was asked to leave out. */
const NOT_COMPILED = /^\.(plt|init$|fini$)/;

/** Of a file without section headers, its executable segments. What can't lie in the file is none. */
export function codeRanges(elf: ElfFile): CodeRange[] {
  const sections = elf.sections.filter(
    ({ name, flags, size }) => flags & SHF_EXECINSTR && size > 0 && !NOT_COMPILED.test(name),
  );
  const segments = elf.segments.filter(({ type, flags }) => type === PT_LOAD && flags & PF_X);
  const all =
    sections.length > 0
      ? sections.map(({ addr, size }) => ({ start: addr, end: addr + size }))
      : segments.map(({ vaddr, filesz }) => ({ start: vaddr, end: vaddr + filesz }));
  return all.filter(({ start, end }) => Number.isSafeInteger(end) && end - start <= elf.source.size);
}

/** Less is what fills up to the next function, as a rule. */
const MIN_GAP_BYTES = 16;
/** More is not assembly in a program that otherwise has rules: V8's built-in functions have 1.6 MB, and a plug-in. */
const MAX_GAP_BYTES = 1 << 20;

/** Gaps in which functions are looked for; `isPoor`: much of the file's code has no rules. */
export function gapsToSearch(elf: ElfFile, rows: FunctionRows, isPoor: boolean): CodeRange[] {
  return codeRanges(elf)
    .sort((a, b) => a.start - b.start)
    .flatMap((range) => findGaps(range, rows))
    .filter(({ start, end }) => end - start >= MIN_GAP_BYTES && (isPoor || end - start <= MAX_GAP_BYTES));
}

/** The parts of it that lie in no function, ascending. */
export function findGaps({ start, end }: CodeRange, rows: FunctionRows): CodeRange[] {
  const gaps: CodeRange[] = [];
  let at = start;
  for (const i of rows.byStart()) {
    const from = rows.starts[i]!;
    if (from >= end) break;
    if (from > at) gaps.push({ start: at, end: from });
    at = Math.max(at, rows.ends[i]!);
  }
  if (at < end) gaps.push({ start: at, end });
  return gaps;
}
