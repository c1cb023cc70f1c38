/**
 * Function symbols of an ELF file, and which of them covers an address. An address outside every symbol's real
 * size has no name: a guess by the nearest symbol would be a wrong name that looks right.
 *
 * Names stay in the file and are read when somebody asks: of a table of 100,000 symbols a profile shows some
 * hundred, and reading all names costs ten times what all the rest of the table does.
 */
import { type ByteSource, OutOfBounds } from '../elf/source.ts';
import { type Alias, compareAliases } from './name-column.ts';
import type { NameSource } from './symbol-candidates.ts';

export interface ElfSymbol {
  name: string;
  /** ELF virtual address. */
  start: number;
  size: number;
}

/**
 * Columns of a table, by ascending start. Symbols can nest (a label inside a function): `parents[i]` is the one
 * before `i` that was not over where `i` starts, -1 if none; following it from the last symbol at or before an
 * address meets every symbol that can contain it, the innermost first.
 */
export interface SymbolColumns {
  /** Address to which the starts are relative. */
  base: number;
  starts: Uint32Array;
  sizes: Uint32Array;
  parents: Int32Array;
  /** Names of symbol i are the aliases `[firstAliases[i], firstAliases[i + 1])`. */
  firstAliases: Uint32Array;
  /** By alias: where in its source the name stands. */
  nameAts: Uint32Array;
  /** By alias: binding in the lower two bits, number of the source above them. */
  kinds: Uint8Array;
  sources: readonly NameSource[];
}

/** Real code nests two or three deep; a hostile file must not make a look-up long. */
const MAX_NESTING = 64;
/** Real functions have ten names at most. */
const MAX_ALIASES = 64;
/** Most names fit into the first piece. */
const FIRST_PIECE = 192;
const MAX_NAME = 16 * 1024;
const AT_SIGN = 0x40;

const decoder = new TextDecoder();

export class SymbolTable {
  readonly #file: ByteSource;
  readonly #columns: SymbolColumns;
  /** Entries of the file that are broken or too many. */
  readonly skipped: number;

  /** `file` is where the names are read from, for as long as the table is in use. */
  constructor(file: ByteSource, columns: SymbolColumns, skipped: number) {
    this.#file = file;
    this.#columns = columns;
    this.skipped = skipped;
  }

  get count(): number {
    return this.#columns.starts.length;
  }

  get byteLength(): number {
    const { starts, sizes, parents, firstAliases, nameAts, kinds } = this.#columns;
    return [starts, sizes, parents, firstAliases, nameAts, kinds].reduce((sum, c) => sum + c.byteLength, 0);
  }

  /** The innermost symbol that contains an ELF virtual address, and has a readable name. */
  lookup(address: number): ElfSymbol | undefined {
    const { base, starts, sizes, parents } = this.#columns;
    const at = address - base;
    let i = findLast(starts, at);
    for (let step = 0; i >= 0 && step < MAX_NESTING; step++) {
      const symbol = at - starts[i]! < sizes[i]! ? this.at(i) : undefined;
      if (symbol && symbol.name !== '') return symbol;
      i = parents[i]!;
    }
    return undefined;
  }

  /** The symbol of an index below `count`; its name is '' where it can't be read. */
  at(i: number): ElfSymbol {
    const { base, starts, sizes } = this.#columns;
    return { name: this.#name(i), start: base + starts[i]!, size: sizes[i]! };
  }

  #name(i: number): string {
    const { firstAliases, kinds, sources } = this.#columns;
    const first = firstAliases[i]!;
    const end = Math.min(firstAliases[i + 1]!, first + MAX_ALIASES);
    let best: { alias: Alias; source: NameSource } | undefined;
    for (let k = first; k < end; k++) {
      const source = sources[kinds[k]! >> 2]!;
      const alias = this.#alias(k);
      if (!alias) continue;
      // a function has its own name rather than that of what it chooses
      const isWorse =
        best &&
        (Number(source.isOfResolvers) - Number(best.source.isOfResolvers) ||
          compareAliases(alias, best.alias)) >= 0;
      if (!isWorse) best = { alias, source };
    }
    if (!best) return '';
    const { bytes, start, end: nameEnd } = best.alias;
    return decoder.decode(bytes.subarray(start, nameEnd)) + best.source.suffix;
  }

  /** Without a version (`@GLIBC_2.34`); undefined where there is no name. */
  #alias(k: number): Alias | undefined {
    const { nameAts, kinds, sources } = this.#columns;
    const source = sources[kinds[k]! >> 2]!;
    const nameAt = nameAts[k]!;
    const room = Math.min(source.size - nameAt, MAX_NAME);
    try {
      for (const length of [Math.min(room, FIRST_PIECE), room]) {
        const bytes = this.#file.read(source.offset + nameAt, length);
        const end = endOfName(bytes);
        if (end === 0) return undefined;
        if (end < length || length === room) return { bind: kinds[k]! & 3, bytes, start: 0, end };
      }
    } catch (error) {
      // the file was cut short since
      if (!(error instanceof OutOfBounds)) throw error;
    }
    return undefined;
  }
}

/** At its NUL or at the version behind it; all of the bytes where neither is there. */
function endOfName(bytes: Uint8Array): number {
  for (let at = 0; at < bytes.length; at++) {
    if (bytes[at] === 0 || (bytes[at] === AT_SIGN && at > 0)) return at;
  }
  return bytes.length;
}

/** Index of the last entry that is not greater than `value`, -1 if none. */
function findLast(sorted: Uint32Array, value: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle]! <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
