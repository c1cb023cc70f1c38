/**
 * Function symbols of an ELF file, and which of them covers an address. An address outside every symbol's real
 * size has no name: a guess by the nearest symbol would be a wrong name that looks right.
 */
import type { NameColumn } from './name-column.ts';

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
  /** Name i is `names[nameStarts[i], nameStarts[i + 1])`. */
  nameStarts: Uint32Array;
  names: NameColumn;
}

/** Real code nests two or three deep; a hostile file must not make a look-up long. */
const MAX_NESTING = 64;

export class SymbolTable {
  readonly #columns: SymbolColumns;
  /** Entries of the file that are broken or too many. */
  readonly skipped: number;

  constructor(columns: SymbolColumns, skipped: number) {
    this.#columns = columns;
    this.skipped = skipped;
  }

  get count(): number {
    return this.#columns.starts.length;
  }

  get byteLength(): number {
    const { starts, sizes, parents, nameStarts, names } = this.#columns;
    return (
      starts.byteLength + sizes.byteLength + parents.byteLength + nameStarts.byteLength + names.byteLength
    );
  }

  /** The innermost symbol that contains an ELF virtual address. */
  lookup(address: number): ElfSymbol | undefined {
    const { base, starts, sizes, parents } = this.#columns;
    const at = address - base;
    let i = findLast(starts, at);
    for (let step = 0; i >= 0 && step < MAX_NESTING; step++) {
      if (at - starts[i]! < sizes[i]!) return this.at(i);
      i = parents[i]!;
    }
    return undefined;
  }

  /** The symbol of an index below `count`. */
  at(i: number): ElfSymbol {
    const { base, starts, sizes, nameStarts, names } = this.#columns;
    const name = names.decode(nameStarts[i]!, nameStarts[i + 1]!);
    return { name, start: base + starts[i]!, size: sizes[i]! };
  }
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
