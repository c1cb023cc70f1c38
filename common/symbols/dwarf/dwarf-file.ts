/** The debug sections of one ELF file: an executable, its separate debug information, a .dwo, .dwp or dwz file. */
import { ElfError, type ElfFile, SHT_NOBITS } from '../../elf/elf.ts';
import { bufferSource, OutOfBounds } from '../../elf/source.ts';
import { IN_MEMORY, type Scratch } from '../scratch.ts';
import { SectionBytes } from './section-bytes.ts';

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
  readonly #maxResident: number;
  /** Where decompressed sections go. */
  readonly #scratch: Scratch;
  readonly #sections = new Map<SectionName, SectionBytes>();
  /** Sections that could not be decompressed, or are too large for it. */
  damaged = 0;
  #resident = 0;

  /** `maxResident`: bytes that all compressed sections together may have when decompressed. */
  constructor(elf: ElfFile, isSplit: boolean, maxResident: number, scratch: Scratch = IN_MEMORY) {
    this.#scratch = scratch;
    this.elf = elf;
    this.isSplit = isSplit;
    this.#maxResident = maxResident;
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

  #open(name: SectionName): SectionBytes {
    const { elf } = this;
    const suffix = this.isSplit && !name.endsWith('_index') ? '.dwo' : '';
    const section = elf.section(`.debug_${name}${suffix}`) ?? elf.section(`.zdebug_${name}${suffix}`);
    if (!section || section.type === SHT_NOBITS || section.size === 0) return EMPTY;
    const isGnuCompressed = section.name.startsWith('.zdebug');
    try {
      if (!(section.flags & SHF_COMPRESSED) && !isGnuCompressed)
        return new SectionBytes(elf.source, section.offset, section.size, false, {
          // where memory is short enough to keep tables elsewhere, there is none for this
          holdsLast: !this.#scratch.isOutside,
        });
      const content = elf.sectionData(section, this.#maxResident - this.#resident);
      this.#resident += content.length;
      const stored = this.#scratch.store(content);
      return new SectionBytes(stored, 0, content.length, !this.#scratch.isOutside);
    } catch (error) {
      if (!(error instanceof ElfError || error instanceof OutOfBounds)) throw error;
      this.damaged++;
      return EMPTY;
    }
  }
}
