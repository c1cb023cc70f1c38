/** Whether a good part of a file's code has no rules, so that looking for more of them elsewhere is worth it. */
import { type ElfFile, PF_X, PT_LOAD, SHF_EXECINSTR } from '../../common/elf/elf.ts';
import type { FunctionRows } from './rows.ts';

/** Start files and padding have none in any program. */
const MAX_UNKNOWN_SHARE = 0.25;
/** Described by the linker, or read instruction by instruction: not what a compiler was asked to leave out. */
const NOT_COMPILED = /^\.(plt|init$|fini$)/;

export function lacksRules(elf: ElfFile, rows: FunctionRows): boolean {
  const order = rows.byStart();
  let code = 0;
  let known = 0;
  for (const { start, end } of codeRanges(elf)) {
    code += end - start;
    known += knownBytes(rows, order, start, end);
  }
  return code > 0 && 1 - known / code > MAX_UNKNOWN_SHARE;
}

interface Range {
  start: number;
  end: number;
}

function codeRanges(elf: ElfFile): Range[] {
  const sections = elf.sections.filter(
    ({ name, flags, size }) => flags & SHF_EXECINSTR && size > 0 && !NOT_COMPILED.test(name),
  );
  if (sections.length > 0) return sections.map(({ addr, size }) => ({ start: addr, end: addr + size }));
  return elf.segments
    .filter(({ type, flags }) => type === PT_LOAD && flags & PF_X)
    .map(({ vaddr, filesz }) => ({ start: vaddr, end: vaddr + filesz }));
}

/** Bytes of [from, to) that lie in a function, each counted once. */
function knownBytes(rows: FunctionRows, order: Uint32Array, from: number, to: number): number {
  let known = 0;
  let at = from;
  for (const i of order) {
    const start = Math.max(at, rows.starts[i]!);
    const end = Math.min(to, rows.ends[i]!);
    if (end <= start) continue;
    known += end - start;
    at = end;
  }
  return known;
}
