/** Where a file keeps its call frame information: by section, or, without section headers, by program header. */
import { Cursor } from '../../common/base/cursor.ts';
import {
  ElfError,
  type ElfFile,
  PT_GNU_EH_FRAME,
  PT_LOAD,
  type Section,
  type Segment,
  SHT_NOBITS,
} from '../../common/elf/elf.ts';
import { OutOfBounds } from '../../common/elf/source.ts';
import { BadFrame } from './cfi-program.ts';
import { DW_EH_PE_DATAREL, DW_EH_PE_PCREL, readEncoded } from './encodings.ts';
import type { FrameSection } from './frame-section.ts';

/** The largest known programs have 60 MiB. */
const MAX_FRAME_BYTES = 256 << 20;
const PT_GNU_SFRAME = 0x6474e554;
const MAX_TABLE_ENTRIES = 8 << 20;
const MAX_HEADER_BYTES = 64;

/** Undefined where there is none that can be read: it was one source of several. */
export function findEhFrame(elf: ElfFile): FrameSection | undefined {
  const section = elf.section('.eh_frame');
  return (section && readSection(elf, section, true)) ?? attempt(() => findBySegment(elf));
}

export function findDebugFrame(elf: ElfFile): FrameSection | undefined {
  const section = elf.section('.debug_frame');
  return section && readSection(elf, section, false);
}

/** Without section headers, by its segment. */
export function findSframe(elf: ElfFile): FrameSection | undefined {
  const section = elf.section('.sframe');
  if (section) return readSection(elf, section, false);
  const segment = elf.segments.find(({ type }) => type === PT_GNU_SFRAME);
  if (!segment || segment.filesz === 0) return undefined;
  const bytes = attempt(() => elf.source.read(segment.offset, Math.min(segment.filesz, MAX_FRAME_BYTES)));
  return bytes && { bytes, address: segment.vaddr, isEhFrame: false };
}

function readSection(elf: ElfFile, section: Section, isEhFrame: boolean): FrameSection | undefined {
  if (section.type === SHT_NOBITS || section.size === 0) return undefined;
  const bytes = attempt(() => elf.sectionData(section, MAX_FRAME_BYTES));
  return bytes && { bytes, address: section.addr, isEhFrame };
}

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof OutOfBounds || error instanceof ElfError || error instanceof BadFrame)
      return undefined;
    throw error;
  }
}

interface EhFrameHeader {
  ehFrame: number;
  /** Address of the table of (function, FDE), 4 bytes each, relative to the header; undefined: none of that form. */
  table: { address: number; count: number } | undefined;
}

/** PT_GNU_EH_FRAME's content: Linux Standard Base, "The .eh_frame_hdr section". */
function readHeader(elf: ElfFile, header: Segment): EhFrameHeader {
  const bytes = elf.source.read(header.offset, Math.min(header.filesz, MAX_HEADER_BYTES));
  const cursor = new Cursor(bytes);
  if (cursor.u8() !== 1) throw new BadFrame('unknown version of .eh_frame_hdr');
  const [pointerEncoding, countEncoding, tableEncoding] = [cursor.u8(), cursor.u8(), cursor.u8()];
  const ehFrame = readPointer(cursor, pointerEncoding, header.vaddr);
  const isKnown = countEncoding === 0x03 && tableEncoding === (DW_EH_PE_DATAREL | 0x0b);
  if (!isKnown) return { ehFrame, table: undefined };
  const count = cursor.u32();
  return { ehFrame, table: count === 0 ? undefined : { address: header.vaddr + cursor.at, count } };
}

function readPointer(cursor: Cursor, encoding: number, address: number): number {
  const application = encoding & 0xf0;
  const base =
    application === DW_EH_PE_PCREL ? address + cursor.at : application === DW_EH_PE_DATAREL ? address : 0;
  if (base === 0 && application !== 0) throw new BadFrame(`pointer encoding 0x${encoding.toString(16)}`);
  return base + readEncoded(cursor, encoding);
}

function findBySegment(elf: ElfFile): FrameSection | undefined {
  const header = elf.segments.find((s) => s.type === PT_GNU_EH_FRAME);
  if (!header) return undefined;
  const { ehFrame, table } = readHeader(elf, header);
  const segment = elf.segments.find(
    (s) => s.type === PT_LOAD && ehFrame >= s.vaddr && ehFrame < s.vaddr + s.filesz,
  );
  if (!segment) return undefined;
  const offset = segment.offset + (ehFrame - segment.vaddr);
  const end = table && attempt(() => endOfLastFde(elf, header, table));
  const size = (end ?? segment.vaddr + segment.filesz) - ehFrame;
  if (size <= 0) return undefined;
  const bytes = elf.source.read(offset, Math.min(size, MAX_FRAME_BYTES));
  return { bytes, address: ehFrame, isEhFrame: true, endsAtZero: end === undefined };
}

/** The table is sorted by function; the FDE that lies furthest back ends the section. */
function endOfLastFde(elf: ElfFile, header: Segment, table: { address: number; count: number }): number {
  if (table.count > MAX_TABLE_ENTRIES) throw new BadFrame(`${table.count} FDEs`);
  const offset = header.offset + (table.address - header.vaddr);
  const cursor = new Cursor(elf.source.read(offset, table.count * 8));
  let last = 0;
  for (let i = 0; i < table.count; i++) {
    cursor.skip(4);
    last = Math.max(last, header.vaddr + cursor.i32());
  }
  const lastOffset = elf.addressToFileOffset(last);
  if (lastOffset === undefined) throw new BadFrame('an FDE outside the file');
  return last + 4 + new Cursor(elf.source.read(lastOffset, 4)).u32();
}
