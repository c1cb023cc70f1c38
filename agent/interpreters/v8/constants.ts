/**
 * Constants of a file that may hold V8 are 20 to 50 MB, of which a few hundred bytes are looked for: they are read window by
 * window, as far as needed. Foreign sizes: no more than {@link MAX_RODATA} is read.
 */
import type { ElfFile, Section } from '../../../common/elf/elf.ts';

const MAX_RODATA = 128 << 20;
const WINDOW_BYTES = 1 << 20;
/** Of two neighbours: what is looked for is shorter, so that one of them has it whole. */
const OVERLAP_BYTES = 1024;

function constantsOf(elf: ElfFile): Section | undefined {
  const section = elf.section('.rodata');
  return section && section.size <= MAX_RODATA ? section : undefined;
}

/** All of them; undefined where there are none, or too many. Throws OutOfBounds. */
export function readConstants(elf: ElfFile): Buffer | undefined {
  const section = constantsOf(elf);
  return section && read(elf, section.offset, section.size);
}

/** Windows that overlap, from the beginning on. Throws OutOfBounds. */
export function* windowsOfConstants(elf: ElfFile): Generator<Buffer> {
  const section = constantsOf(elf);
  if (!section) return;
  for (let at = 0; at < section.size; at += WINDOW_BYTES - OVERLAP_BYTES)
    yield read(elf, section.offset + at, Math.min(WINDOW_BYTES, section.size - at));
}

function read(elf: ElfFile, offset: number, length: number): Buffer {
  const { buffer, byteOffset } = elf.source.read(offset, length);
  return Buffer.from(buffer, byteOffset, length);
}
