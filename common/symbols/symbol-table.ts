/**
 * Function symbols of an ELF file, and which of them covers an address. An address outside every symbol's real
 * size has no name: a guess by the nearest symbol would be a wrong name that looks right.
 *
 * Names stay in the file and are read when somebody asks: of a table of 100,000 symbols a profile shows some
 * hundred, and reading all names costs ten times what all the rest of the table does. The rest stays outside memory as
 * well, where there is room: of a table of 2 MB, a look-up reads one block of 1 KB.
 */

import { type ByteSource, OutOfBounds } from '../base/byte-source.ts';
import { countBelow, lastAtOrBelow } from '../base/search.ts';
import { AddressRange } from './address-range.ts';
import { type Alias, compareAliases } from './name-column.ts';
import { IN_MEMORY, packColumns, packParts, type Scratch, unpackColumns, unpackParts } from './scratch.ts';
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

/** Words of a row: start, size, parent, first alias; one row more ends the aliases of the last. */
const ROW_WORDS = 4;
/** Words of an alias: where its name stands, kind. */
const ALIAS_WORDS = 2;
/** The starts of every so many rows stay in memory, so that a look-up reads one block. */
const BLOCK_ROWS = 64;

/** In a scratch that finds it again. */
const STORED_AS = 'symbols 2';

const decoder = new TextDecoder();

interface Answer {
  symbol: ElfSymbol | undefined;
  range: AddressRange;
}

interface Row {
  start: number;
  size: number;
  parent: number;
}

export class SymbolTable {
  readonly #file: ByteSource;
  readonly #base: number;
  readonly #sources: readonly NameSource[];
  readonly #blockStarts: Uint32Array;
  readonly #rows: ByteSource;
  readonly #aliases: ByteSource;
  /** That was read last: who has many addresses asks for them in ascending order. */
  #block: { index: number; words: Uint32Array } | undefined;
  /** Neighbours ask for it again. */
  #last: Answer | undefined;
  readonly count: number;
  /** Entries of the file that are broken or too many. */
  readonly skipped: number;
  /** Bytes in memory. */
  readonly byteLength: number;

  private constructor(file: ByteSource, packed: ByteSource, isOutside: boolean) {
    const [numbers, blockStarts, rows, aliases] = unpackParts(packed);
    this.#file = file;
    const [base, skipped, ...sources] = unpackColumns(numbers!, [Float64Array])[0];
    this.#base = base!;
    this.skipped = skipped!;
    this.#sources = unpackSources(sources);
    this.#blockStarts = unpackColumns(blockStarts!, [Uint32Array])[0];
    this.#rows = rows!;
    this.#aliases = aliases!;
    this.count = rows!.size / (ROW_WORDS * 4) - 1;
    this.byteLength = isOutside ? this.#blockStarts.byteLength : packed.size;
  }

  /** `file` is where the names are read from, for as long as the table is in use; rows go into `scratch`. */
  static of(
    file: ByteSource,
    columns: SymbolColumns,
    skipped: number,
    scratch: Scratch = IN_MEMORY,
  ): SymbolTable {
    const { base, starts, sources } = columns;
    const blockStarts = Uint32Array.from(
      { length: Math.ceil(starts.length / BLOCK_ROWS) },
      (_, i) => starts[i * BLOCK_ROWS]!,
    );
    const numbers = Float64Array.of(base, skipped, ...sources.flatMap(packSource));
    const parts = [
      packColumns([numbers]),
      packColumns([blockStarts]),
      packRows(columns),
      packAliases(columns),
    ];
    return new SymbolTable(file, scratch.store(packParts(parts), STORED_AS), scratch.isOutside);
  }

  /** What an earlier run made of the same file. */
  static find(file: ByteSource, scratch: Scratch): SymbolTable | undefined {
    const packed = scratch.find(STORED_AS);
    return packed && new SymbolTable(file, packed, true);
  }

  /**
   * The innermost symbol that contains an ELF virtual address, and has a readable name. Narrows `range` to addresses
   * with the same one.
   */
  lookup(address: number, range?: AddressRange): ElfSymbol | undefined {
    if (!this.#last?.range.contains(address)) this.#last = this.#find(address);
    range?.narrow(this.#last.range.start, this.#last.range.end);
    return this.#last.symbol;
  }

  #find(address: number): Answer {
    const range = new AddressRange();
    const at = address - this.#base;
    let i = this.#lastAtOrBelow(at);
    range.narrow(this.#startOf(i), this.#startOf(i + 1));
    for (let step = 0; i >= 0 && step < MAX_NESTING; step++) {
      const { start, size, parent } = this.#row(i);
      const end = this.#base + start + size;
      if (address < end) range.narrow(0, end);
      else range.narrow(end, Number.MAX_SAFE_INTEGER);
      const symbol = address < end ? this.at(i) : undefined;
      if (symbol && symbol.name !== '') return { symbol, range };
      i = parent;
    }
    return { symbol: undefined, range };
  }

  /** The symbol of an index below `count`; its name is '' where it can't be read. */
  at(i: number): ElfSymbol {
    const { start, size } = this.#row(i);
    return { name: this.#name(i), start: this.#base + start, size };
  }

  /** Where the symbol begins; those before the first and behind the last begin where there is none. */
  #startOf(i: number): number {
    if (i < 0) return 0;
    return i < this.count ? this.#base + this.#row(i).start : Number.MAX_SAFE_INTEGER;
  }

  #row(i: number): Row {
    const block = Math.floor(i / BLOCK_ROWS);
    const isRead = this.#block?.index === block;
    const words = isRead ? this.#block!.words : wordsAt(this.#rows, i * ROW_WORDS, 3);
    const at = isRead ? (i - block * BLOCK_ROWS) * ROW_WORDS : 0;
    return { start: words[at]!, size: words[at + 1]!, parent: words[at + 2]! | 0 };
  }

  #lastAtOrBelow(at: number): number {
    const block = lastAtOrBelow(this.#blockStarts, at);
    if (block < 0) return -1;
    const words = this.#wordsOf(block);
    return block * BLOCK_ROWS + countBelow(words.length / ROW_WORDS, (i) => words[i * ROW_WORDS]! <= at) - 1;
  }

  /** A copy of a block's rows. */
  #wordsOf(block: number): Uint32Array {
    if (this.#block?.index !== block) {
      const first = block * BLOCK_ROWS;
      const rows = Math.min(BLOCK_ROWS, this.count - first);
      this.#block = { index: block, words: wordsAt(this.#rows, first * ROW_WORDS, rows * ROW_WORDS).slice() };
    }
    return this.#block.words;
  }

  #name(i: number): string {
    const [first, , , , end] = wordsAt(this.#rows, i * ROW_WORDS + 3, ROW_WORDS + 1);
    const count = Math.min(end! - first!, MAX_ALIASES);
    const aliases = wordsAt(this.#aliases, first! * ALIAS_WORDS, count * ALIAS_WORDS);
    let best: { alias: Alias; source: NameSource } | undefined;
    for (let k = 0; k < count; k++) {
      const kind = aliases[k * ALIAS_WORDS + 1]!;
      const source = this.#sources[kind >> 2]!;
      const alias = this.#alias(source, aliases[k * ALIAS_WORDS]!, kind & 3);
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
  #alias(source: NameSource, nameAt: number, bind: number): Alias | undefined {
    const room = Math.min(source.size - nameAt, MAX_NAME);
    try {
      for (const length of [Math.min(room, FIRST_PIECE), room]) {
        const bytes = this.#file.read(source.offset + nameAt, length);
        const end = endOfName(bytes);
        if (end === 0) return undefined;
        if (end < length || length === room) return { bind, bytes, start: 0, end };
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

const SOURCE_NUMBERS = 4;
const SUFFIXES: readonly NameSource['suffix'][] = ['', '@plt'];

const packSource = ({ offset, size, suffix, isOfResolvers }: NameSource): number[] => [
  offset,
  size,
  SUFFIXES.indexOf(suffix),
  Number(isOfResolvers),
];

const unpackSources = (numbers: readonly number[]): NameSource[] =>
  Array.from({ length: numbers.length / SOURCE_NUMBERS }, (_, i) => {
    const [offset, size, suffix, isOfResolvers] = numbers.slice(i * SOURCE_NUMBERS, (i + 1) * SOURCE_NUMBERS);
    return { offset: offset!, size: size!, suffix: SUFFIXES[suffix!]!, isOfResolvers: isOfResolvers === 1 };
  });

function packRows({ starts, sizes, parents, firstAliases }: SymbolColumns): Uint8Array {
  const words = new Uint32Array((starts.length + 1) * ROW_WORDS);
  for (let i = 0; i < starts.length; i++) {
    words[i * ROW_WORDS] = starts[i]!;
    words[i * ROW_WORDS + 1] = sizes[i]!;
    words[i * ROW_WORDS + 2] = parents[i]!;
    words[i * ROW_WORDS + 3] = firstAliases[i]!;
  }
  words[starts.length * ROW_WORDS + 3] = firstAliases[starts.length]!;
  return new Uint8Array(words.buffer);
}

function packAliases({ nameAts, kinds }: SymbolColumns): Uint8Array {
  const words = new Uint32Array(nameAts.length * ALIAS_WORDS);
  for (let i = 0; i < nameAts.length; i++) {
    words[i * ALIAS_WORDS] = nameAts[i]!;
    words[i * ALIAS_WORDS + 1] = kinds[i]!;
  }
  return new Uint8Array(words.buffer);
}

function wordsAt(source: ByteSource, first: number, count: number): Uint32Array {
  const { buffer, byteOffset } = source.read(first * 4, count * 4);
  return new Uint32Array(buffer, byteOffset, count);
}
