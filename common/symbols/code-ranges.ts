import { countBelow } from '../base/search.ts';
import { type ElfFile, PF_X, PT_LOAD, SHF_EXECINSTR } from '../elf/elf.ts';

/** Executable bytes of a file: its sections with instructions, or its segments where sections were stripped. */
export interface CodeRange {
  start: number;
  end: number;
}

/** Sections that the linker makes: no compiler describes what is in them. */
const STUBS = new Set(['.plt', '.plt.sec', '.plt.got', '.iplt']);

/** Ascending; overlaps are cut off. Without stubs where that is said. */
export function readCodeRanges(elf: ElfFile, withStubs = true): CodeRange[] {
  const sections = elf.sections.filter(
    ({ flags, addr, name }) => flags & SHF_EXECINSTR && addr > 0 && (withStubs || !STUBS.has(name)),
  );
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

/** As {@link findCodeRange}, for addresses that mostly stand in one range, one behind the other. */
export function codeRangeFinder(ranges: readonly CodeRange[]): (address: number) => CodeRange | undefined {
  let last: CodeRange | undefined;
  return (address) => {
    if (last && address >= last.start && address < last.end) return last;
    const found = findCodeRange(ranges, address);
    last = found ?? last;
    return found;
  };
}

/** The range that contains an address. */
export function findCodeRange(ranges: readonly CodeRange[], address: number): CodeRange | undefined {
  const range = ranges[countBelow(ranges.length, (i) => ranges[i]!.start <= address) - 1];
  return range && address < range.end ? range : undefined;
}
