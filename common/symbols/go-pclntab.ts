/**
 * Names, lines and inlined calls of Go programs, from the table that the runtime itself needs: it is there in
 * stripped programs, too. Layout: Go's src/internal/abi/symtab.go and src/runtime/symtab.go, of Go 1.16 (magic
 * 0xfffffffa, addresses where there are offsets since), 1.18 (0xfffffff0) and of 1.20 and later (0xfffffff1).
 *
 * A function has small programs that give a number for each of its addresses: file, line, and which inlined call
 * the address belongs to. Inlined calls form a tree; each says at which address of the function it was made, and
 * the file and line of that address are those of the call.
 */

import { bufferSource, OutOfBounds } from '../base/byte-source.ts';
import { countBelow } from '../base/search.ts';
import { ElfError, type ElfFile } from '../elf/elf.ts';
import { type GoHeader, readGoHeader } from '../elf/go-header.ts';
import {
  findGoFunctionData,
  findGoText,
  GO_HEADER_BYTES,
  type GoTablePlace,
  locateGoTable,
} from '../elf/go-module.ts';
import { AddressRange } from './address-range.ts';
import { SectionBytes } from './section-bytes.ts';
import type { SymbolFrame, SymbolSource } from './source.ts';

const MAX_DECOMPRESSED_BYTES = 256 << 20;
const WINDOWS = 48;
const SHF_COMPRESSED = 0x800;
const MAX_NAME = 4096;
/** Of one address; real chains have ten at most. */
const MAX_INLINED = 64;
/** Of one program; real ones have some thousand steps. */
const MAX_STEPS = 1 << 16;
/** Indices into a function's tables: src/internal/abi/symtab.go. */
const PCDATA_INL_TREE_INDEX = 2;
const FUNCDATA_INL_TREE = 3;
const NO_DATA = 0xffff_ffff;

/** Undefined where the file has no such table, or one of another version. */
export function readGoSymbols(elf: ElfFile): SymbolSource | undefined {
  try {
    const place = locateGoTable(elf);
    if (!place) return undefined;
    const bytes = openTable(elf, place);
    const start = bytes.bytes(0, Math.min(GO_HEADER_BYTES, bytes.size));
    const header = readGoHeader(start, bytes.size, () => findGoText(elf, place.address));
    return new GoTable(elf, bytes, header, inlineTrees(elf, header, place));
  } catch (error) {
    if (error instanceof OutOfBounds || error instanceof ElfError) return undefined;
    throw error;
  }
}

/** In windows: of the tables of a large program, which have 50 MB, a profile needs some hundred places. */
function openTable(elf: ElfFile, { section, offset, size }: GoTablePlace): SectionBytes {
  if (!section || !(section.flags & SHF_COMPRESSED))
    return new SectionBytes(elf.source, offset, size, false, { maxWindows: WINDOWS });
  const bytes = elf.sectionData(section, MAX_DECOMPRESSED_BYTES);
  return new SectionBytes(bufferSource(bytes), 0, bytes.length, true);
}

/** What places of inline trees count from; before 1.18 they are addresses. Undefined if unknown. */
const inlineTrees = (elf: ElfFile, { release }: GoHeader, { address }: GoTablePlace): number | undefined =>
  release === 16 ? 0 : findGoFunctionData(elf, address);

class GoTable implements SymbolSource {
  readonly #elf: ElfFile;
  readonly #bytes: SectionBytes;
  readonly #header: GoHeader;
  readonly #trees: number | undefined;

  constructor(elf: ElfFile, bytes: SectionBytes, header: GoHeader, trees: number | undefined) {
    this.#elf = elf;
    this.#bytes = bytes;
    this.#header = header;
    this.#trees = trees;
  }

  get byteLength(): number {
    return this.#bytes.byteLength;
  }

  lookup(address: number, range?: AddressRange): SymbolFrame[] {
    try {
      return this.#lookup(address, range);
    } catch (error) {
      range?.narrowTo(address);
      if (error instanceof RangeError || error instanceof OutOfBounds) return [];
      throw error;
    }
  }

  #lookup(address: number, range: AddressRange | undefined): SymbolFrame[] {
    const { textStart, functionCount, functions, release } = this.#header;
    // the last entry is where all of them end
    const below = countBelow(functionCount + 1, (i) => textStart + this.#entry(2 * i) <= address);
    const index = below - 1;
    if (index >= 0) range?.narrow(textStart + this.#entry(2 * index), Number.MAX_SAFE_INTEGER);
    if (below <= functionCount) range?.narrow(0, textStart + this.#entry(2 * below));
    if (index < 0 || below > functionCount) return [];
    const entry = this.#entry(2 * index);
    const func = new GoFunction(this.#bytes, release, functions + this.#entry(2 * index + 1), entry);
    const steps = range && new AddressRange();
    const chain = this.#chain(func, address - textStart - entry, steps);
    if (steps) range.narrow(textStart + entry + steps.start, textStart + entry + steps.end);
    return chain;
  }

  #entry(index: number): number {
    const { functions, wordBytes } = this.#header;
    return this.#bytes.uint(functions + wordBytes * index, wordBytes);
  }

  /** Narrows `steps`, in offsets of the function. Places of calls are the same for all that was inlined there. */
  #chain(func: GoFunction, start: number, steps: AddressRange | undefined): SymbolFrame[] {
    const frames: SymbolFrame[] = [];
    let at = start;
    for (let depth = 0; depth < MAX_INLINED; depth++) {
      const own = depth === 0 ? steps : undefined;
      const call = this.#inlinedCall(func, at, own);
      if (!call) break;
      frames.push(this.#frame(func, at, { nameOffset: call.name, inlined: true }, own));
      at = call.parent;
    }
    const own = frames.length === 0 ? steps : undefined;
    frames.push(this.#frame(func, at, { nameOffset: func.nameOffset, inlined: false }, own));
    return frames;
  }

  #frame(
    func: GoFunction,
    at: number,
    { nameOffset, inlined }: { nameOffset: number; inlined: boolean },
    steps: AddressRange | undefined,
  ): SymbolFrame {
    const name = this.#text(this.#header.names + nameOffset);
    const file = this.#file(func, this.#value(func.fileProgram, at, steps));
    const line = Math.max(0, this.#value(func.lineProgram, at, steps));
    return { function: name, systemName: name, file, line: file === '' ? 0 : line, column: 0, inlined };
  }

  #inlinedCall(
    func: GoFunction,
    at: number,
    steps: AddressRange | undefined,
  ): { name: number; parent: number } | undefined {
    const program = func.data(PCDATA_INL_TREE_INDEX);
    const tree = func.functionData(FUNCDATA_INL_TREE);
    if (!program || tree === NO_DATA || this.#trees === undefined) return undefined;
    const index = this.#value(program, at, steps);
    if (index < 0) return undefined;
    // 1.20: { funcID u8, 3 bytes, name i32, parentPc i32, startLine i32 }; before: 20 bytes with file and line
    const [size, nameAt, parentAt] = this.#header.release === 20 ? [16, 4, 8] : [20, 12, 16];
    const entry = this.#read(this.#trees + tree + index * size, size);
    const view = new DataView(entry.buffer, entry.byteOffset, size);
    const parent = view.getInt32(parentAt, true);
    return parent < 0 ? undefined : { name: view.getInt32(nameAt, true), parent };
  }

  /** Bytes at an ELF virtual address. */
  #read(address: number, length: number): Uint8Array {
    const offset = this.#elf.addressToFileOffset(address);
    if (offset === undefined) throw new OutOfBounds(`${length} bytes at address ${address}`);
    return this.#elf.source.read(offset, length);
  }

  #file(func: GoFunction, index: number): string {
    if (index < 0) return '';
    const { units, files } = this.#header;
    const offset = this.#bytes.uint(units + 4 * (func.unit + index), 4);
    return offset === NO_DATA ? '' : this.#text(files + offset);
  }

  #text(at: number): string {
    return this.#bytes.string(at).slice(0, MAX_NAME);
  }

  /** Runs a program up to an offset of its function; -1 where it has no value. Narrows `steps` to where it is the same. */
  #value(program: number, offset: number, steps: AddressRange | undefined): number {
    if (program === 0) return -1;
    const { quantum, programs } = this.#header;
    return this.#bytes.parse(programs + program, this.#bytes.size, (cursor) => {
      let value = -1;
      let end = 0;
      for (let step = 0; step < MAX_STEPS; step++) {
        const delta = cursor.uleb();
        if (delta === 0 && step > 0) break;
        value += delta % 2 === 1 ? -(delta + 1) / 2 : delta / 2;
        const start = end;
        end += cursor.uleb() * quantum;
        if (offset >= end) continue;
        steps?.narrow(start, end);
        return value;
      }
      steps?.narrow(end, Number.MAX_SAFE_INTEGER);
      return -1;
    });
  }
}

/** The `_func` of one function. */
class GoFunction {
  readonly #bytes: SectionBytes;
  /** Before 1.18 it began with an address of 8 bytes; what follows has not changed. */
  readonly #at: number;
  readonly #size: number;
  readonly #isOld: boolean;

  /** `at` is its place in the table; `entry` is checked against what it says of itself. */
  constructor(bytes: SectionBytes, release: GoHeader['release'], at: number, entry: number) {
    this.#isOld = release === 16;
    if (bytes.uint(at, this.#isOld ? 8 : 4) !== entry) throw new RangeError('tables contradict each other');
    this.#bytes = bytes;
    this.#at = this.#isOld ? at + 4 : at;
    this.#size = release === 20 ? 44 : 40;
  }

  get nameOffset(): number {
    return this.#bytes.uint(this.#at + 4, 4) | 0;
  }

  get fileProgram(): number {
    return this.#bytes.uint(this.#at + 20, 4);
  }

  get lineProgram(): number {
    return this.#bytes.uint(this.#at + 24, 4);
  }

  /** Index of its compilation unit's first file. */
  get unit(): number {
    return this.#bytes.uint(this.#at + 32, 4);
  }

  get #programs(): number {
    return this.#bytes.uint(this.#at + 28, 4);
  }

  /** A program of its own, 0 if there is none. */
  data(index: number): number {
    return index < this.#programs ? this.#bytes.uint(this.#at + this.#size + 4 * index, 4) : 0;
  }

  /** Offset of data in the module, before 1.18 its address; {@link NO_DATA} if there is none. */
  functionData(index: number): number {
    if (index >= this.#bytes.uint(this.#at + this.#size - 1, 1)) return NO_DATA;
    if (this.#isOld) {
      const first = Math.ceil((this.#at + this.#size + 4 * this.#programs) / 8) * 8;
      return this.#bytes.uint(first + 8 * index, 8) || NO_DATA;
    }
    return this.#bytes.uint(this.#at + this.#size + 4 * (this.#programs + index), 4);
  }
}
