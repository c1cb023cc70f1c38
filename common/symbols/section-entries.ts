import { ElfError, type ElfFile, type Section, SHT_STRTAB } from '../elf/elf.ts';

/** They are read whole for a moment; what is larger is left out. */
const MAX_STRINGS_BYTES = 256 << 20;
const SHF_COMPRESSED = 0x800;
const CHUNK_ENTRIES = 4096;

/** The string table that a symbol table's names stand in. Throws ElfError. */
export function findStrings(elf: ElfFile, symbols: Section): Section {
  const section = elf.sections[symbols.link];
  if (!section || section.type !== SHT_STRTAB) throw new ElfError(`${symbols.name} names no string table`);
  if (section.flags & SHF_COMPRESSED) throw new ElfError(`${section.name} is compressed`);
  return section;
}

/** Its bytes. Throws ElfError or OutOfBounds. */
export function readStrings(elf: ElfFile, symbols: Section): Uint8Array {
  const section = findStrings(elf, symbols);
  if (section.size > MAX_STRINGS_BYTES) throw new ElfError(`${section.name} has ${section.size} bytes`);
  return elf.sectionData(section);
}

/**
 * Calls `visit` with each entry of a table, up to `limit` of them. Reads piece by piece: such tables have many
 * megabytes, of which little is kept. Throws ElfError or OutOfBounds, after the entries before the damage.
 */
export function forEachEntry(
  elf: ElfFile,
  section: Section,
  { entryBytes, limit }: { entryBytes: number; limit: number },
  visit: (view: DataView, at: number) => void,
): void {
  if (section.flags & SHF_COMPRESSED) throw new ElfError(`${section.name} is compressed`);
  const count = Math.min(Math.floor(section.size / entryBytes), limit);
  for (let first = 0; first < count; first += CHUNK_ENTRIES) {
    const entries = Math.min(CHUNK_ENTRIES, count - first);
    const bytes = elf.source.read(section.offset + first * entryBytes, entries * entryBytes);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (let i = 0; i < entries; i++) visit(view, i * entryBytes);
  }
}

export const readU64 = (view: DataView, at: number): number =>
  view.getUint32(at + 4, true) * 2 ** 32 + view.getUint32(at, true);
