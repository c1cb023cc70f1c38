/** Function symbols as they are collected from a file's tables, before aliases and overlaps are settled. */
import { type CodeRange, findCodeRange } from './code-ranges.ts';
import { NameColumn } from './name-column.ts';

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
  nameStarts = new Uint32Array(1025);
  readonly names = new NameColumn();

  constructor(ranges: readonly CodeRange[]) {
    this.ranges = ranges;
    this.base = ranges[0]?.start ?? 0;
  }

  /**
   * Adds a function at an ELF virtual address; its name is a NUL-terminated string in `strings`, of which a
   * version (`@GLIBC_2.34`) is left out. False, and counted, if the entry is broken or outside all code.
   */
  add(address: number, size: number, bind: number, strings: Uint8Array, nameAt: number): boolean {
    const range = findCodeRange(this.ranges, address);
    const end = endOfName(strings, nameAt);
    const start = address - this.base;
    if (!range || end <= nameAt || start > 0xffff_ffff || this.#isFull(end - nameAt)) {
      this.skipped++;
      return false;
    }
    if (this.count === this.starts.length) this.#grow(this.count * 2);
    const i = this.count++;
    this.starts[i] = start;
    this.sizes[i] = Math.min(size, range.end - address, 0xffff_ffff);
    this.binds[i] = bind;
    this.names.append(strings, nameAt, end);
    this.nameStarts[i + 1] = this.names.length;
    return true;
  }

  #isFull(nameBytes: number): boolean {
    return this.count >= MAX_CANDIDATES || this.names.length + nameBytes > MAX_NAMES_BYTES;
  }

  #grow(capacity: number): void {
    const grown = <T extends { set(source: T): void }>(to: T, from: T): T => {
      to.set(from);
      return to;
    };
    this.starts = grown(new Uint32Array(capacity), this.starts);
    this.sizes = grown(new Uint32Array(capacity), this.sizes);
    this.nameStarts = grown(new Uint32Array(capacity + 1), this.nameStarts);
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
