/** The debug sections of one ELF file: an executable, its separate debug information, a .dwo, .dwp or dwz file. */

import { bufferSource, OutOfBounds } from '../../base/byte-source.ts';
import { ElfError, type ElfFile, SHT_NOBITS } from '../../elf/elf.ts';
import { IN_MEMORY, type Scratch } from '../scratch.ts';
import { MANY_WINDOWS, SectionBytes } from '../section-bytes.ts';

const SHF_COMPRESSED = 0x800;

export type SectionName =
  | 'info'
  | 'types'
  | 'abbrev'
  | 'line'
  | 'line_str'
  | 'str'
  | 'str_offsets'
  | 'addr'
  | 'ranges'
  | 'rnglists'
  | 'aranges'
  | 'cu_index'
  | 'tu_index';

const EMPTY = new SectionBytes(bufferSource(new Uint8Array(0)), 0, 0, true);

export class DwarfFile {
  readonly elf: ElfFile;
  /** Sections are called `.debug_….dwo`. */
  readonly isSplit: boolean;
  readonly #maxDecompressed: number;
  /** Where decompressed sections go. */
  readonly #scratch: Scratch;
  readonly #sections = new Map<SectionName, SectionBytes>();
  /** Sections that could not be decompressed, or are too large for it. */
  damaged = 0;
  #resident = 0;

  /**
   * `maxDecompressed`: bytes that a compressed section may have when decompressed, and all of those together that do not
   * go into `scratch`.
   */
  constructor(elf: ElfFile, isSplit: boolean, maxDecompressed: number, scratch: Scratch = IN_MEMORY) {
    this.#scratch = scratch;
    this.elf = elf;
    this.isSplit = isSplit;
    this.#maxDecompressed = maxDecompressed;
  }

  /** Empty where the file has none. */
  section(name: SectionName): SectionBytes {
    let section = this.#sections.get(name);
    if (!section) {
      section = this.#open(name);
      this.#sections.set(name, section);
    }
    return section;
  }

  get byteLength(): number {
    let sum = 0;
    for (const section of this.#sections.values()) sum += section.byteLength;
    return sum;
  }

  /** Where memory is short enough to keep tables elsewhere, there is none for more. */
  #room(name: SectionName): { maxWindows?: number; holdsLast: boolean } {
    if (this.#scratch.isOutside) return { holdsLast: false };
    return name === 'str' ? { holdsLast: true, maxWindows: MANY_WINDOWS } : { holdsLast: true };
  }

  #open(name: SectionName): SectionBytes {
    const { elf } = this;
    const suffix = this.isSplit && !name.endsWith('_index') ? '.dwo' : '';
    const section = elf.section(`.debug_${name}${suffix}`) ?? elf.section(`.zdebug_${name}${suffix}`);
    if (!section || section.type === SHT_NOBITS || section.size === 0) return EMPTY;
    const isGnuCompressed = section.name.startsWith('.zdebug');
    try {
      if (!(section.flags & SHF_COMPRESSED) && !isGnuCompressed)
        return new SectionBytes(elf.source, section.offset, section.size, false, this.#room(name));
      const found = this.#scratch.find(section.name);
      if (found && found.size <= this.#maxDecompressed) return new SectionBytes(found, 0, found.size, false);
      const left = this.#maxDecompressed - this.#resident;
      const content = elf.sectionData(section, this.#scratch.isOutside ? this.#maxDecompressed : left);
      const stored = this.#scratch.store(content, section.name);
      const isResident = !this.#scratch.isOutside;
      // the scratch room may have ended with this one
      if (isResident && content.length > left)
        throw new ElfError(`section ${section.name} has ${content.length} bytes when decompressed`);
      if (isResident) this.#resident += content.length;
      return new SectionBytes(stored, 0, content.length, isResident);
    } catch (error) {
      if (!(error instanceof ElfError || error instanceof OutOfBounds)) throw error;
      this.damaged++;
      return EMPTY;
    }
  }
}
