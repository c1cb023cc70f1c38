/** Function symbols as they are collected from a file's tables, before aliases and overlaps are settled. */
import { ElfError } from '../elf/elf.ts';
import { type CodeRange, findCodeRange } from './code-ranges.ts';
import type { Alias } from './name-column.ts';

/** Indices are packed beside 32-bit starts into doubles for sorting, which leaves 21 bits. */
export const MAX_CANDIDATES = 1 << 21;
const MAX_NAMES_BYTES = 256 << 20;
const MAX_NAME = 16 * 1024;
const AT_SIGN = 0x40;

export class SymbolCandidates {
  readonly ranges: readonly CodeRange[];
  readonly base: number;
  count = 0;
  skipped = 0;
  starts = new Uint32Array(1024);
  /** 0: to the next symbol, or to the end of the range. */
  sizes = new Uint32Array(1024);
  binds = new Uint8Array(1024);
  #nameStarts = new Uint32Array(1024);
  #nameEnds = new Uint32Array(1024);
  #nameSources = new Uint8Array(1024);
  readonly #sources: Uint8Array[] = [];
  #nameBytes = 0;

  constructor(ranges: readonly CodeRange[]) {
    this.ranges = ranges;
    this.base = ranges[0]?.start ?? 0;
  }

  /**
   * Adds a function at an ELF virtual address; its name is a NUL-terminated string in a source of
   * {@link addSource}, of which a version (`@GLIBC_2.34`) is left out. An entry that is broken or outside all code
   * is only counted.
   */
  add(address: number, size: number, bind: number, source: number, nameAt: number): void {
    const range = findCodeRange(this.ranges, address);
    const end = endOfName(this.#sources[source]!, nameAt);
    const start = address - this.base;
    if (!range || end <= nameAt || start > 0xffff_ffff || this.#isFull(end - nameAt)) {
      this.skipped++;
      return;
    }
    if (this.count === this.starts.length) this.#grow(this.count * 2);
    const i = this.count++;
    this.starts[i] = start;
    this.sizes[i] = Math.min(size, range.end - address, 0xffff_ffff);
    this.binds[i] = bind;
    this.#nameStarts[i] = nameAt;
    this.#nameEnds[i] = end;
    this.#nameSources[i] = source;
    this.#nameBytes += end - nameAt;
  }

  /** Where names are read from, when they are compared and copied at the end; at most 255 of them. */
  addSource(strings: Uint8Array): number {
    if (this.#sources.length === 255) throw new ElfError('more than 255 symbol tables');
    return this.#sources.push(strings) - 1;
  }

  /** Name and binding of an entry. */
  alias(i: number): Alias {
    return {
      bind: this.binds[i]!,
      bytes: this.#sources[this.#nameSources[i]!]!,
      start: this.#nameStarts[i]!,
      end: this.#nameEnds[i]!,
    };
  }

  #isFull(nameBytes: number): boolean {
    return this.count >= MAX_CANDIDATES || this.#nameBytes + nameBytes > MAX_NAMES_BYTES;
  }

  #grow(capacity: number): void {
    const grown = <T extends { set(source: T): void }>(to: T, from: T): T => {
      to.set(from);
      return to;
    };
    this.starts = grown(new Uint32Array(capacity), this.starts);
    this.sizes = grown(new Uint32Array(capacity), this.sizes);
    this.#nameStarts = grown(new Uint32Array(capacity), this.#nameStarts);
    this.#nameEnds = grown(new Uint32Array(capacity), this.#nameEnds);
    this.#nameSources = grown(new Uint8Array(capacity), this.#nameSources);
    this.binds = grown(new Uint8Array(capacity), this.binds);
  }
}

/** Where a name ends, `nameAt` or less if there is none: at its NUL, or at the version behind it. */
function endOfName(strings: Uint8Array, nameAt: number): number {
  if (nameAt >= strings.length) return -1;
  const limit = Math.min(strings.length, nameAt + MAX_NAME);
  let at = nameAt;
  while (at < limit && strings[at] !== 0 && (strings[at] !== AT_SIGN || at === nameAt)) at++;
  return isPltSuffix(strings, at) ? at + PLT_SUFFIX.length - 1 : at;
}

const PLT_SUFFIX = new TextEncoder().encode('@plt\0');

/** The one suffix that is part of the name: plt-symbols.ts adds it. */
const isPltSuffix = (strings: Uint8Array, at: number): boolean =>
  PLT_SUFFIX.every((byte, i) => strings[at + i] === byte);
