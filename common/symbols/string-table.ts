import { ElfError, type ElfFile, type Section, SHT_STRTAB } from '../elf/elf.ts';

/** They are read whole for a moment; what is larger is left out. */
const MAX_STRINGS_BYTES = 256 << 20;

/** The string table that a symbol table's names stand in. Throws ElfError or OutOfBounds. */
export function readStrings(elf: ElfFile, symbols: Section): Uint8Array {
  const section = elf.sections[symbols.link];
  if (!section || section.type !== SHT_STRTAB) throw new ElfError(`${symbols.name} names no string table`);
  if (section.size > MAX_STRINGS_BYTES) throw new ElfError(`${section.name} has ${section.size} bytes`);
  return elf.sectionData(section);
}
