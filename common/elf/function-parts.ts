/**
 * The code of a function that its symbol does not hold: compilers split functions. With profile-guided and link-time
 * optimisation the symbol of CPython's interpreter loop may cover a kilobyte of prologue while 80 kB of loop stand elsewhere as a
 * ".cold" part without a symbol. Such a part is a function of the unwind information that the function jumps into and
 * that jumps back into the middle of it; no other function does that, since calls and tail calls enter a
 * function at its start.
 *
 * Jumps are found by looking at every byte for the opcodes of jumps with a 32-bit distance (jmp E9, jcc 0F 8x).
 * Bytes that only look like one lead into a large function and back by chance about once in 10^5 files. On arm64 every fourth
 * byte begins an instruction (b, b.cond, cbz, tbz: Arm Architecture Reference Manual, C4.1.67).
 */
import type { ElfFile } from './elf.ts';
import { type CodeRange, findFunction, readFunctions } from './function-ranges.ts';

/** Its symbol's among them. */
const MAX_PARTS = 4;
const MAX_FUNCTION_BYTES = 1 << 20;
const MAX_PART_BYTES = 1 << 20;
/** A part smaller than that holds no call that could be on a stack for long. */
const MIN_PART_BYTES = 32;

/** `whole` is what its symbol says; it comes first. `functions`: those of the file, where several are asked for. */
export function findFunctionParts(
  elf: ElfFile,
  whole: CodeRange,
  functions = readFunctions(elf),
): CodeRange[] {
  if (whole.end - whole.start > MAX_FUNCTION_BYTES) return [whole];
  const candidates = new Map<number, CodeRange>();
  forEachJump(elf, whole, (target) => {
    if (target >= whole.start && target < whole.end) return;
    const part = findFunction(functions, target);
    if (part && part.start !== whole.start) candidates.set(part.start, part);
  });
  const parts = [...candidates.values()].filter((part) => {
    const size = part.end - part.start;
    return size >= MIN_PART_BYTES && size <= MAX_PART_BYTES && jumpsIntoMiddle(elf, part, whole);
  });
  // the largest first: of an interpreter it is the loop, where there are more parts than can be told
  parts.sort((a, b) => b.end - b.start - (a.end - a.start));
  return [whole, ...parts.slice(0, MAX_PARTS - 1)];
}

function jumpsIntoMiddle(elf: ElfFile, part: CodeRange, whole: CodeRange): boolean {
  let found = false;
  forEachJump(elf, part, (target) => {
    if (target > whole.start && target < whole.end) found = true;
  });
  return found;
}

function forEachJump(elf: ElfFile, range: CodeRange, visit: (target: number) => void): void {
  const offset = elf.addressToFileOffset(range.start);
  if (offset === undefined) return;
  const bytes = elf.source.read(offset, range.end - range.start);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (elf.machine === 'aarch64') {
    for (let i = 0; i + 4 <= bytes.length; i += 4) {
      const distance = jumpOfArm64(view.getInt32(i, true));
      if (distance !== undefined) visit(range.start + i + distance);
    }
    return;
  }
  for (let i = 0; i + 5 <= bytes.length; i++) {
    if (bytes[i] === 0xe9) visit(range.start + i + 5 + view.getInt32(i + 1, true));
    else if (bytes[i] === 0x0f && (bytes[i + 1]! & 0xf0) === 0x80 && i + 6 <= bytes.length)
      visit(range.start + i + 6 + view.getInt32(i + 2, true));
  }
}

/** Where the instruction jumps to, in bytes from itself. */
function jumpOfArm64(word: number): number | undefined {
  if (word >>> 26 === 0x05) return ((word << 6) >> 6) * 4;
  const isConditional = word >>> 24 === 0x54;
  const isCompare = ((word >>> 25) & 0x3f) === 0x1a;
  if (isConditional || isCompare) return ((word << 8) >> 13) * 4;
  const isTest = ((word >>> 25) & 0x3f) === 0x1b;
  return isTest ? ((word << 13) >> 18) * 4 : undefined;
}
