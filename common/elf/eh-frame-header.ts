/** PT_GNU_EH_FRAME: where .eh_frame is, and a table to search it. Linux Standard Base, "The .eh_frame_hdr section". */
import { Cursor } from '../base/cursor.ts';
import { ElfError, type ElfFile, PT_GNU_EH_FRAME, type Segment } from './elf.ts';
import { DW_EH_PE_DATAREL, DW_EH_PE_PCREL, readEncoded } from './pointer-encodings.ts';

const MAX_HEADER_BYTES = 64;
const SDATA4 = 0x0b;
const UDATA4 = 0x03;

export interface EhFrameHeader {
  /** ELF virtual addresses. */
  address: number;
  ehFrame: number;
  /** Of (function, FDE), 4 bytes each, relative to the header, by function; undefined: none of that form. */
  table: { address: number; count: number } | undefined;
}

/** Undefined where the file has none. Throws {@link ElfError} or OutOfBounds for one that can't be read. */
export function readEhFrameHeader(elf: ElfFile): EhFrameHeader | undefined {
  const segment = elf.segments.find(({ type }) => type === PT_GNU_EH_FRAME);
  return segment && readHeader(elf, segment);
}

function readHeader(elf: ElfFile, { offset, filesz, vaddr: address }: Segment): EhFrameHeader {
  const cursor = new Cursor(elf.source.read(offset, Math.min(filesz, MAX_HEADER_BYTES)));
  if (cursor.u8() !== 1) throw new ElfError('unknown version of .eh_frame_hdr');
  const [pointerEncoding, countEncoding, tableEncoding] = [cursor.u8(), cursor.u8(), cursor.u8()];
  const ehFrame = readPointer(cursor, pointerEncoding, address);
  const isKnown = countEncoding === UDATA4 && tableEncoding === (DW_EH_PE_DATAREL | SDATA4);
  const count = isKnown ? cursor.u32() : 0;
  return { address, ehFrame, table: count === 0 ? undefined : { address: address + cursor.at, count } };
}

function readPointer(cursor: Cursor, encoding: number, address: number): number {
  const application = encoding & 0xf0;
  const base =
    application === DW_EH_PE_PCREL ? address + cursor.at : application === DW_EH_PE_DATAREL ? address : 0;
  if (base === 0 && application !== 0) throw new ElfError(`pointer encoding 0x${encoding.toString(16)}`);
  return base + readEncoded(cursor, encoding);
}
