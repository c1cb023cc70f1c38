/**
 * An ELF file around code and unwind information that were found in memory, so that its table is made as that of any
 * file. The code is in it, since a JIT describes a part of it at most: numba's functions can't throw, so that LLVM leaves
 * theirs out.
 */
import type { FrameSection } from '../stack-deltas/sources/frame-section.ts';

const PAGE_BYTES = 4096;

const HEADER_BYTES = 64;
const SEGMENT_BYTES = 56;
const SECTION_BYTES = 64;
const NAMES = '\0.eh_frame\0.debug_frame\0.shstrtab\0';
const [ET_DYN, PT_LOAD, READ_EXECUTE, SHT_PROGBITS, SHT_STRTAB, SHF_ALLOC] = [3, 1, 5, 1, 3, 2];

export interface FrameImage {
  bytes: Buffer;
  /** Where the code begins in it. */
  codeOffset: number;
}

/** `machine`: ELF's number; `code`: absolute addresses, and what lies there, all of it or nothing. */
export function frameImage(
  machine: number,
  code: { start: number; end: number; bytes: Uint8Array },
  frames: FrameSection,
): FrameImage {
  const framesAt = HEADER_BYTES + SEGMENT_BYTES;
  const namesAt = framesAt + frames.bytes.length;
  const sectionsAt = namesAt + NAMES.length;
  const headersEnd = sectionsAt + 3 * SECTION_BYTES;
  const codeOffset = Math.ceil(headersEnd / PAGE_BYTES) * PAGE_BYTES;
  const out = Buffer.alloc(codeOffset + code.bytes.length);
  out.set(code.bytes, codeOffset);
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
  writeWords(out, HEADER_BYTES + 8, codeOffset, code.start, code.start, size, size, PAGE_BYTES);
  out.set(frames.bytes, framesAt);
  out.write(NAMES, namesAt, 'latin1');
  const name = frames.isEhFrame ? '.eh_frame' : '.debug_frame';
  writeSection(out, sectionsAt + SECTION_BYTES, {
    ...{ name: NAMES.indexOf(name), type: SHT_PROGBITS, flags: SHF_ALLOC, address: frames.address },
    ...{ offset: framesAt, size: frames.bytes.length },
  });
  writeSection(out, sectionsAt + 2 * SECTION_BYTES, {
    ...{
      name: NAMES.indexOf('.shstrtab'),
      type: SHT_STRTAB,
      flags: 0,
      address: 0,
      offset: namesAt,
      size: NAMES.length,
    },
  });
  return { bytes: out, codeOffset };
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
