/**
 * Where a library finds a variable that it exports: in the slot of its global offset table that the loader has filled. A program that
 * refers to the variable has it in its own memory (a copy relocation), and the library's place is not used.
 */
import { type ElfFile, SHT_DYNSYM } from '../elf/elf.ts';
import { forEachEntry, readU64 } from './section-entries.ts';

const SHT_RELA = 4;
const RELA_BYTES = 24;
const SYMBOL_BYTES = 24;
/** GLOB_DAT of amd64 and of arm64: the psABIs, "Relocation Types". */
const GLOB_DAT = new Set([6, 1025]);
const MAX_RELOCATIONS = 1 << 20;

/** ELF virtual address of the slot; undefined where the file has none, as a program whose own the variable is. Throws ElfError, OutOfBounds. */
export function findGlobalSlot(elf: ElfFile, variable: number): number | undefined {
  const section = elf.sections.find(({ type }) => type === SHT_DYNSYM);
  if (!section) return undefined;
  const bytes = elf.sectionData(section);
  const symbols = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let slot: number | undefined;
  for (const relocations of elf.sections) {
    if (relocations.type !== SHT_RELA || relocations.name !== '.rela.dyn') continue;
    forEachEntry(elf, relocations, { entryBytes: RELA_BYTES, limit: MAX_RELOCATIONS }, (view, at) => {
      const symbol = view.getUint32(at + 12, true) * SYMBOL_BYTES;
      if (!GLOB_DAT.has(view.getUint32(at + 8, true)) || symbol + SYMBOL_BYTES > symbols.byteLength) return;
      if (readU64(symbols, symbol + 8) === variable) slot = readU64(view, at);
    });
  }
  return slot;
}
