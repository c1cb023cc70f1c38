/** A few symbols of an ELF file by their names: how a runtime is told by what its file defines. */
import { type ElfFile, SHT_DYNSYM, SHT_SYMTAB } from '../elf/elf.ts';
import { forEachEntry, readStrings, readU64 } from './section-entries.ts';

const SYMBOL_BYTES = 24;
const MAX_SYMBOLS = 1 << 22;
/** Of one name. */
const MAX_PLACES = 64;

export interface NamedSymbol {
  /** ELF virtual address; of a thread-local variable its offset. */
  address: number;
  /** Bytes. */
  size: number;
}

/**
 * Those of the names that the file defines, by the first table that has them. Tables without `marker`, one of them, are not gone
 * through: nearly every file has none of a runtime. Throws ElfError or OutOfBounds.
 */
export function findNamedSymbols<T extends string>(
  elf: ElfFile,
  marker: T,
  wanted: readonly T[],
): Map<T, NamedSymbol> {
  const found = new Map<T, NamedSymbol>();
  for (const section of elf.sections) {
    if (section.type !== SHT_DYNSYM && section.type !== SHT_SYMTAB) continue;
    const strings = readStrings(elf, section);
    const names = Buffer.from(strings.buffer, strings.byteOffset, strings.length);
    if (!names.includes(marker)) continue;
    const byOffset = new Map<number, T>();
    for (const name of wanted) for (const at of placesOf(names, name)) byOffset.set(at, name);
    forEachEntry(elf, section, { entryBytes: SYMBOL_BYTES, limit: MAX_SYMBOLS }, (view, at) => {
      const name = byOffset.get(view.getUint32(at, true));
      // section 0: only referred to, as in a module that imports it
      if (!name || found.has(name) || view.getUint16(at + 6, true) === 0) return;
      found.set(name, { address: readU64(view, at + 8), size: readU64(view, at + 16) });
    });
  }
  return found;
}

/** Where the name may begin: linkers let it be the end of a longer one. */
function placesOf(names: Buffer, name: string): number[] {
  const places: number[] = [];
  for (let at = names.indexOf(`${name}\0`, 0, 'latin1'); at >= 0 && places.length < MAX_PLACES; ) {
    places.push(at);
    at = names.indexOf(`${name}\0`, at + 1, 'latin1');
  }
  return places;
}
