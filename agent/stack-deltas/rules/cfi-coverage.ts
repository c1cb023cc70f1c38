/** Whether a good part of a file's code has no rules, so that looking for more of them elsewhere is worth it. */
import type { ElfFile } from '../../../common/elf/elf.ts';
import { codeRanges, findGaps } from './gaps.ts';
import type { FunctionRows } from './rows.ts';

/** Start files and padding have none in any program. */
const MAX_UNKNOWN_SHARE = 0.25;

export function lacksCfi(elf: ElfFile, rows: FunctionRows): boolean {
  let code = 0;
  let unknown = 0;
  for (const range of codeRanges(elf)) {
    code += range.end - range.start;
    for (const { start, end } of findGaps(range, rows)) unknown += end - start;
  }
  return code > 0 && unknown / code > MAX_UNKNOWN_SHARE;
}
