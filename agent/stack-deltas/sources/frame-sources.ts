/** Where a file keeps its call frame information: by section, or, without section headers, by program header. */

import { OutOfBounds } from '../../../common/base/byte-source.ts';
import { Cursor } from '../../../common/base/cursor.ts';
import { readEhFrameHeader } from '../../../common/elf/eh-frame-header.ts';
import { ElfError, type ElfFile, PT_LOAD, type Section, SHT_NOBITS } from '../../../common/elf/elf.ts';
import { BadFrame } from './cfi-program.ts';
import type { FrameSection } from './frame-section.ts';

/** The largest known programs have 60 MiB. */
const MAX_FRAME_BYTES = 256 << 20;
const PT_GNU_SFRAME = 0x6474e554;
const MAX_TABLE_ENTRIES = 8 << 20;

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

function findBySegment(elf: ElfFile): FrameSection | undefined {
  const header = readEhFrameHeader(elf);
  if (!header) return undefined;
  const { ehFrame, table } = header;
  const segment = elf.segments.find(
    (s) => s.type === PT_LOAD && ehFrame >= s.vaddr && ehFrame < s.vaddr + s.filesz,
  );
  if (!segment) return undefined;
  const offset = segment.offset + (ehFrame - segment.vaddr);
  const end = table && attempt(() => endOfLastFde(elf, header.address, table));
  const size = (end ?? segment.vaddr + segment.filesz) - ehFrame;
  if (size <= 0) return undefined;
  const bytes = elf.source.read(offset, Math.min(size, MAX_FRAME_BYTES));
  return { bytes, address: ehFrame, isEhFrame: true, endsAtZero: end === undefined };
}

/** The table is sorted by function; the FDE that lies furthest back ends the section. */
function endOfLastFde(elf: ElfFile, header: number, table: { address: number; count: number }): number {
  if (table.count > MAX_TABLE_ENTRIES) throw new BadFrame(`${table.count} FDEs`);
  const offset = elf.addressToFileOffset(table.address);
  if (offset === undefined) throw new BadFrame('a table outside the file');
  const cursor = new Cursor(elf.source.read(offset, table.count * 8));
  let last = 0;
  for (let i = 0; i < table.count; i++) {
    cursor.skip(4);
    last = Math.max(last, header + cursor.i32());
  }
  const lastOffset = elf.addressToFileOffset(last);
  if (lastOffset === undefined) throw new BadFrame('an FDE outside the file');
  return last + 4 + new Cursor(elf.source.read(lastOffset, 4)).u32();
}
