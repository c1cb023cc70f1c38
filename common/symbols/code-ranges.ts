import { countBelow } from '../base/search.ts';
import { type ElfFile, PF_X, PT_LOAD, SHF_EXECINSTR } from '../elf/elf.ts';

/** Executable bytes of a file: its sections with instructions, or its segments where sections were stripped. */
export interface CodeRange {
  start: number;
  end: number;
}

/** Ascending; overlaps are cut off. */
export function readCodeRanges(elf: ElfFile): CodeRange[] {
  const sections = elf.sections.filter(({ flags, addr }) => flags & SHF_EXECINSTR && addr > 0);
  const segments = elf.segments.filter(({ type, flags }) => type === PT_LOAD && flags & PF_X);
  const all = (
    sections.length > 0
      ? sections.map(({ addr, size }) => ({ start: addr, end: addr + size }))
      : segments.map(({ vaddr, memsz }) => ({ start: vaddr, end: vaddr + memsz }))
  ).sort((a, b) => a.start - b.start);
  const ranges: CodeRange[] = [];
  for (const { start, end } of all) {
    const from = Math.max(start, ranges.at(-1)?.end ?? 0);
    if (end > from && Number.isSafeInteger(end)) ranges.push({ start: from, end });
  }
  return ranges;
}

/** The range that contains an address. */
export function findCodeRange(ranges: readonly CodeRange[], address: number): CodeRange | undefined {
  const range = ranges[countBelow(ranges.length, (i) => ranges[i]!.start <= address) - 1];
  return range && address < range.end ? range : undefined;
}
