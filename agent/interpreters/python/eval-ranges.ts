/**
 * The code of the interpreter loop, `_PyEval_EvalFrameDefault`. Compilers split it: with profile-guided and
 * link-time optimisation the symbol may cover a kilobyte of prologue while 80 kB of loop stand elsewhere as a
 * ".cold" part without a symbol. Such a part is a function of the unwind information that the loop jumps into and
 * that jumps back into the middle of the loop; no other function does that, since calls and tail calls enter a
 * function at its start.
 *
 * Jumps are found by looking at every byte for the opcodes of jumps with a 32-bit distance (jmp E9, jcc 0F 8x).
 * Bytes that only look like one lead into the loop and back by chance about once in 10^5 files. On arm64 every fourth
 * byte begins an instruction (b, b.cond, cbz, tbz: Arm Architecture Reference Manual, C4.1.67).
 */
import { lastAtOrBelow } from '../../../common/base/search.ts';
import { type ElfFile, PT_GNU_EH_FRAME } from '../../../common/elf/elf.ts';

export interface CodeRange {
  /** ELF virtual addresses; `end` is exclusive. */
  start: number;
  end: number;
}

/** The loop and at most this many parts of it. */
export const MAX_EVAL_RANGES = 4;
const MAX_LOOP_BYTES = 1 << 20;
const MAX_PART_BYTES = 1 << 20;
const MAX_FUNCTIONS = 1 << 20;
/** A part smaller than that holds no call that could be on a stack for long. */
const MIN_PART_BYTES = 32;

export function findEvalRanges(elf: ElfFile, loop: CodeRange): CodeRange[] {
  if (loop.end - loop.start > MAX_LOOP_BYTES) return [loop];
  const functions = readFunctions(elf);
  const candidates = new Map<number, CodeRange>();
  forEachJump(elf, loop, (target) => {
    if (target >= loop.start && target < loop.end) return;
    const part = findFunction(functions, target);
    if (part && part.start !== loop.start) candidates.set(part.start, part);
  });
  const parts = [...candidates.values()].filter((part) => {
    const size = part.end - part.start;
    return size >= MIN_PART_BYTES && size <= MAX_PART_BYTES && jumpsIntoMiddle(elf, part, loop);
  });
  // the largest first: it is the loop, where there are more parts than can be told
  parts.sort((a, b) => b.end - b.start - (a.end - a.start));
  return [loop, ...parts.slice(0, MAX_EVAL_RANGES - 1)];
}

function jumpsIntoMiddle(elf: ElfFile, part: CodeRange, loop: CodeRange): boolean {
  let found = false;
  forEachJump(elf, part, (target) => {
    if (target > loop.start && target < loop.end) found = true;
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
  for (let i = 0; i + 6 <= bytes.length; i++) {
    if (bytes[i] === 0xe9) visit(range.start + i + 5 + view.getInt32(i + 1, true));
    else if (bytes[i] === 0x0f && (bytes[i + 1]! & 0xf0) === 0x80)
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

interface FunctionTable {
  starts: Float64Array;
  /** ELF virtual address of each function's FDE. */
  fdes: Float64Array;
  elf: ElfFile;
}

const DATAREL_SDATA4 = 0x3b;
const UDATA4 = 0x03;
const PCREL_SDATA4 = 0x1b;

/** The search table of .eh_frame_hdr in the only form that linkers write (LSB, "Exception Frame Header"). */
function readFunctions(elf: ElfFile): FunctionTable {
  const none = { starts: new Float64Array(0), fdes: new Float64Array(0), elf };
  const segment = elf.segments.find(({ type }) => type === PT_GNU_EH_FRAME);
  if (!segment || segment.filesz < 12) return none;
  const head = elf.source.read(segment.offset, 12);
  if (head[0] !== 1 || head[1] !== PCREL_SDATA4 || head[2] !== UDATA4 || head[3] !== DATAREL_SDATA4)
    return none;
  const listed = new DataView(head.buffer, head.byteOffset).getUint32(8, true);
  const count = Math.min(listed, MAX_FUNCTIONS, Math.floor((segment.filesz - 12) / 8));
  const bytes = elf.source.read(segment.offset + 12, count * 8);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const starts = new Float64Array(count);
  const fdes = new Float64Array(count);
  for (let i = 0; i < count; i++) {
    starts[i] = segment.vaddr + view.getInt32(i * 8, true);
    fdes[i] = segment.vaddr + view.getInt32(i * 8 + 4, true);
  }
  return { starts, fdes, elf };
}

/** The function that holds an address; undefined where none does or its FDE has an unusual form. */
function findFunction({ starts, fdes, elf }: FunctionTable, address: number): CodeRange | undefined {
  const i = lastAtOrBelow(starts, address);
  if (i < 0) return undefined;
  const start = starts[i]!;
  const at = elf.addressToFileOffset(fdes[i]!);
  if (at === undefined || at + 16 > elf.source.size) return undefined;
  // length, CIE, start relative to itself, size
  const fde = elf.source.read(at, 16);
  const view = new DataView(fde.buffer, fde.byteOffset, fde.byteLength);
  if (fdes[i]! + 8 + view.getInt32(8, true) !== start) return undefined;
  const end = start + view.getUint32(12, true);
  return address < end ? { start, end } : undefined;
}
