/** Function symbols as they are collected from a file's tables, before aliases and overlaps are settled. */
import { ElfError } from '../elf/elf.ts';
import { type CodeRange, codeRangeFinder } from './code-ranges.ts';

/** Indices are packed beside 32-bit starts into doubles for sorting, which leaves 21 bits. */
export const MAX_CANDIDATES = 1 << 21;
const MAX_SOURCES = 64;

/** A table of NUL-terminated names in the file. */
export interface NameSource {
  /** In the file. */
  offset: number;
  size: number;
  /** What is put behind each name. */
  suffix: '' | '@plt';
  /** What stands at its symbols chooses the functions that they name (STT_GNU_IFUNC). */
  isOfResolvers: boolean;
}

export class SymbolCandidates {
  readonly ranges: readonly CodeRange[];
  readonly base: number;
  readonly #rangeOf: (address: number) => CodeRange | undefined;
  readonly sources: NameSource[] = [];
  count = 0;
  skipped = 0;
  starts = new Uint32Array(1024);
  /** 0: the file does not say it. */
  sizes = new Uint32Array(1024);
  nameAts = new Uint32Array(1024);
  /** Binding in the lower two bits, number of the name's source above them. */
  kinds = new Uint8Array(1024);

  constructor(ranges: readonly CodeRange[]) {
    this.ranges = ranges;
    this.#rangeOf = codeRangeFinder(ranges);
    this.base = ranges[0]?.start ?? 0;
  }

  /**
   * Adds a function at an ELF virtual address, whose name stands at `nameAt` of a source of {@link addSource}. An
   * entry without a name or outside all code is only counted.
   */
  add(address: number, size: number, bind: number, source: number, nameAt: number): void {
    const range = this.#rangeOf(address);
    const start = address - this.base;
    const isNamed = nameAt > 0 && nameAt < this.sources[source]!.size;
    if (!range || !isNamed || start > 0xffff_ffff || this.count >= MAX_CANDIDATES) {
      this.skipped++;
      return;
    }
    if (this.count === this.starts.length) this.#grow(this.count * 2);
    const i = this.count++;
    this.starts[i] = start;
    this.sizes[i] = Math.min(size, range.end - address, 0xffff_ffff);
    this.nameAts[i] = nameAt;
    this.kinds[i] = bind | (source << 2);
  }

  /** Returns its number. */
  addSource(source: NameSource): number {
    if (this.sources.length === MAX_SOURCES) throw new ElfError(`more than ${MAX_SOURCES} symbol tables`);
    return this.sources.push(source) - 1;
  }

  /** The table that an entry's name stands in. */
  sourceOf(i: number): NameSource {
    return this.sources[this.kinds[i]! >> 2]!;
  }

  /** How public an entry is: see name-column.ts. */
  bindOf(i: number): number {
    return this.kinds[i]! & 3;
  }

  #grow(capacity: number): void {
    const grown = <T extends { set(source: T): void }>(to: T, from: T): T => {
      to.set(from);
      return to;
    };
    this.starts = grown(new Uint32Array(capacity), this.starts);
    this.sizes = grown(new Uint32Array(capacity), this.sizes);
    this.nameAts = grown(new Uint32Array(capacity), this.nameAts);
    this.kinds = grown(new Uint8Array(capacity), this.kinds);
  }
}
