/** Where functions begin and end, by the search table of unwind information: also of those without a symbol. */
import { lastAtOrBelow } from '../base/search.ts';
import { type ElfFile, PT_GNU_EH_FRAME } from './elf.ts';

export interface CodeRange {
  /** ELF virtual addresses; `end` is exclusive. */
  start: number;
  end: number;
}

const MAX_FUNCTIONS = 1 << 20;

export interface FunctionTable {
  starts: Float64Array;
  /** ELF virtual address of each function's FDE. */
  fdes: Float64Array;
  elf: ElfFile;
}

const DATAREL_SDATA4 = 0x3b;
const UDATA4 = 0x03;
const PCREL_SDATA4 = 0x1b;

/** The search table of .eh_frame_hdr in the only form that linkers write (LSB, "Exception Frame Header"). */
export function readFunctions(elf: ElfFile): FunctionTable {
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
export function findFunction({ starts, fdes, elf }: FunctionTable, address: number): CodeRange | undefined {
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
