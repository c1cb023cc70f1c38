/** Bytes and segments of an ELF file by virtual address: code from foreign files, of which a part can be missing. */
import { type ElfFile, PF_X, PT_LOAD } from './elf.ts';
import type { Segment } from './headers.ts';

/** The executable segment whose bytes in the file hold an address. */
export const codeSegmentAt = (
  { segments }: Pick<ElfFile, 'segments'>,
  address: number,
): Segment | undefined =>
  segments.find(
    (s) => s.type === PT_LOAD && s.flags & PF_X && address >= s.vaddr && address < s.vaddr + s.filesz,
  );

/** Virtual address less file offset of the code at an address; undefined where no code stands there. */
export function textBiasAt(elf: ElfFile, address: number): number | undefined {
  const text = codeSegmentAt(elf, address);
  return text && text.vaddr - text.offset;
}

/** As much of it as the file holds. */
export function codeAt(elf: ElfFile, address: number, length: number): Uint8Array {
  const offset = elf.addressToFileOffset(address) ?? elf.source.size;
  return elf.source.read(offset, Math.max(0, Math.min(length, elf.source.size - offset)));
}

/** Undefined where the file does not hold all of it. */
export function bytesAt(elf: ElfFile, address: number, length: number): Uint8Array | undefined {
  const offset = elf.addressToFileOffset(address);
  if (offset === undefined || offset + length > elf.source.size) return undefined;
  return elf.source.read(offset, length);
}
