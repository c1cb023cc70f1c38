/** An ELF file around unwind information that was found in memory, so that its table is made as that of any file. */
import type { MemoryPart } from './registered-frames.ts';

/** Where the image says that the code lies, beyond its own end: the code itself is not in it. */
export const CODE_OFFSET = 1 << 28;

const HEADER_BYTES = 64;
const SEGMENT_BYTES = 56;
const SECTION_BYTES = 64;
const NAMES = Buffer.from('\0.eh_frame\0.shstrtab\0');
const [ET_DYN, PT_LOAD, READ_EXECUTE, SHT_PROGBITS, SHT_STRTAB, SHF_ALLOC] = [3, 1, 5, 1, 3, 2];

/** `machine`: ELF's number; `code`: absolute addresses. */
export function frameImage(
  machine: number,
  code: { start: number; end: number },
  frames: MemoryPart,
): Buffer {
  const framesAt = HEADER_BYTES + SEGMENT_BYTES;
  const namesAt = framesAt + frames.bytes.length;
  const sectionsAt = namesAt + NAMES.length;
  const out = Buffer.alloc(sectionsAt + 3 * SECTION_BYTES);
  out.write('\x7fELF\x02\x01\x01', 'latin1');
  out.writeUInt16LE(ET_DYN, 16);
  out.writeUInt16LE(machine, 18);
  out.writeUInt32LE(1, 20);
  writeWords(out, 32, HEADER_BYTES, sectionsAt);
  for (const [at, value] of [HEADER_BYTES, SEGMENT_BYTES, 1, SECTION_BYTES, 3, 2].entries())
    out.writeUInt16LE(value, 52 + 2 * at);
  out.writeUInt32LE(PT_LOAD, HEADER_BYTES);
  out.writeUInt32LE(READ_EXECUTE, HEADER_BYTES + 4);
  const size = code.end - code.start;
  writeWords(out, HEADER_BYTES + 8, CODE_OFFSET, code.start, code.start, size, size, 4096);
  frames.bytes.copy(out, framesAt);
  NAMES.copy(out, namesAt);
  writeSection(out, sectionsAt + SECTION_BYTES, {
    ...{ name: 1, type: SHT_PROGBITS, flags: SHF_ALLOC, address: frames.start },
    ...{ offset: framesAt, size: frames.bytes.length },
  });
  writeSection(out, sectionsAt + 2 * SECTION_BYTES, {
    ...{ name: 11, type: SHT_STRTAB, flags: 0, address: 0, offset: namesAt, size: NAMES.length },
  });
  return out;
}

interface SectionHeader {
  name: number;
  type: number;
  flags: number;
  address: number;
  offset: number;
  size: number;
}

function writeSection(out: Buffer, at: number, section: SectionHeader): void {
  out.writeUInt32LE(section.name, at);
  out.writeUInt32LE(section.type, at + 4);
  writeWords(out, at + 8, section.flags, section.address, section.offset, section.size);
  writeWords(out, at + 48, 1, 0);
}

function writeWords(out: Buffer, at: number, ...words: number[]): void {
  for (const [i, word] of words.entries()) out.writeBigUInt64LE(BigInt(word), at + 8 * i);
}
