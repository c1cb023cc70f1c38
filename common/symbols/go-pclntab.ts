/**
 * Names, lines and inlined calls of Go programs, from the table that the runtime itself needs: it is there in
 * stripped programs, too. Layout: Go's src/internal/abi/symtab.go and src/runtime/symtab.go, of Go 1.16 (magic
 * 0xfffffffa, addresses where there are offsets since), 1.18 (0xfffffff0) and of 1.20 and later (0xfffffff1).
 *
 * A function has small programs that give a number for each of its addresses: file, line, and which inlined call
 * the address belongs to. Inlined calls form a tree; each says at which address of the function it was made, and
 * the file and line of that address are those of the call.
 */
import { countBelow } from '../base/search.ts';
import { ElfError, type ElfFile, type Section } from '../elf/elf.ts';
import { bufferSource, OutOfBounds } from '../elf/source.ts';
import { SectionBytes } from './dwarf/section-bytes.ts';
import { findGoModule, type GoModule, oldGoModule } from './go-module.ts';
import type { SymbolFrame, SymbolSource } from './source.ts';

const MAGIC_1_16 = 0xfffffffa;
const MAGIC_1_18 = 0xfffffff0;
const MAGIC_1_20 = 0xfffffff1;
const HEADER_BYTES = 72;
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
  const section = elf.section('.gopclntab') ?? elf.section('.data.rel.ro.gopclntab');
  if (!section || section.size < HEADER_BYTES) return undefined;
  try {
    const bytes = openSection(elf, section);
    const isOld = bytes.uint(0, 4) === MAGIC_1_16;
    return GoTable.open(bytes, isOld ? oldGoModule(elf) : findGoModule(elf, section.addr));
  } catch (error) {
    if (error instanceof OutOfBounds || error instanceof ElfError || error instanceof RangeError)
      return undefined;
    throw error;
  }
}

/** In windows: of the tables of a large program, which have 50 MB, a profile needs some hundred places. */
function openSection(elf: ElfFile, section: Section): SectionBytes {
  if (!(section.flags & SHF_COMPRESSED))
    return new SectionBytes(elf.source, section.offset, section.size, false, { maxWindows: WINDOWS });
  const bytes = elf.sectionData(section, MAX_DECOMPRESSED_BYTES);
  return new SectionBytes(bufferSource(bytes), 0, bytes.length, true);
}

interface Header {
  magic: number;
  /** Bytes of an address of a function, and of its place in the table. */
  entryBytes: number;
  quantum: number;
  functions: number;
  textStart: number;
  names: number;
  units: number;
  files: number;
  programs: number;
  table: number;
}

class GoTable implements SymbolSource {
  readonly #bytes: SectionBytes;
  readonly #header: Header;
  readonly #module: GoModule;

  private constructor(bytes: SectionBytes, header: Header, module: GoModule) {
    this.#bytes = bytes;
    this.#header = header;
    this.#module = module;
  }

  get byteLength(): number {
    return this.#bytes.byteLength;
  }

  static open(bytes: SectionBytes, module: GoModule): GoTable | undefined {
    const magic = bytes.uint(0, 4);
    if (magic !== MAGIC_1_16 && magic !== MAGIC_1_18 && magic !== MAGIC_1_20) return undefined;
    const isOld = magic === MAGIC_1_16;
    const word = (i: number): number => bytes.uint(8 + 8 * i, 8);
    const [names, units, files, programs, table] = [3, 4, 5, 6, 7].map((i) => word(isOld ? i - 1 : i));
    const header: Header = {
      ...{ magic, entryBytes: isOld ? 8 : 4, quantum: bytes.uint(6, 1), functions: word(0) },
      // since Go 1.26 it is 0, and only the module knows
      textStart: isOld ? 0 : word(2) || module.text,
      ...{ names: names!, units: units!, files: files!, programs: programs!, table: table! },
    };
    return isConsistent(header, bytes.size) ? new GoTable(bytes, header, module) : undefined;
  }

  lookup(address: number): SymbolFrame[] {
    try {
      return this.#lookup(address);
    } catch (error) {
      if (error instanceof RangeError || error instanceof OutOfBounds) return [];
      throw error;
    }
  }

  #lookup(address: number): SymbolFrame[] {
    const { textStart, table } = this.#header;
    const offset = address - textStart;
    const index = this.#find(offset);
    if (index < 0) return [];
    const entry = this.#entry(2 * index);
    const func = new GoFunction(this.#bytes, table + this.#entry(2 * index + 1), entry);
    return this.#chain(func, offset - entry);
  }

  /** The function that contains an offset of the text, -1 if none: the last entry is where all of them end. */
  #find(offset: number): number {
    const { functions } = this.#header;
    const below = countBelow(functions + 1, (i) => this.#entry(2 * i) <= offset);
    return below > functions ? -1 : below - 1;
  }

  #entry(index: number): number {
    const { table, entryBytes } = this.#header;
    return this.#bytes.uint(table + entryBytes * index, entryBytes);
  }

  #chain(func: GoFunction, start: number): SymbolFrame[] {
    const frames: SymbolFrame[] = [];
    let at = start;
    for (let step = 0; step < MAX_INLINED; step++) {
      const call = this.#inlinedCall(func, at);
      if (!call) break;
      frames.push(this.#frame(func, at, call.name, true));
      at = call.parent;
    }
    frames.push(this.#frame(func, at, func.nameOffset, false));
    return frames;
  }

  #frame(func: GoFunction, at: number, nameOffset: number, inlined: boolean): SymbolFrame {
    const name = this.#text(this.#header.names + nameOffset);
    const file = this.#file(func, this.#value(func.fileProgram, at));
    const line = Math.max(0, this.#value(func.lineProgram, at));
    return { function: name, systemName: name, file, line: file === '' ? 0 : line, column: 0, inlined };
  }

  #inlinedCall(func: GoFunction, at: number): { name: number; parent: number } | undefined {
    const program = func.data(PCDATA_INL_TREE_INDEX);
    const tree = func.functionData(FUNCDATA_INL_TREE);
    const { functionData } = this.#module;
    if (!program || tree === NO_DATA || !functionData) return undefined;
    const index = this.#value(program, at);
    if (index < 0) return undefined;
    // 1.20: { funcID u8, 3 bytes, name i32, parentPc i32, startLine i32 }; before: 20 bytes with file and line
    const [size, nameAt, parentAt] = this.#header.magic === MAGIC_1_20 ? [16, 4, 8] : [20, 12, 16];
    const entry = functionData.read(tree + index * size, size);
    const view = new DataView(entry.buffer, entry.byteOffset, size);
    const parent = view.getInt32(parentAt, true);
    return parent < 0 ? undefined : { name: view.getInt32(nameAt, true), parent };
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

  /** Runs a program up to an offset of its function; -1 where it has no value. */
  #value(program: number, offset: number): number {
    if (program === 0) return -1;
    const { quantum, programs } = this.#header;
    return this.#bytes.parse(programs + program, this.#bytes.size, (cursor) => {
      let value = -1;
      let end = 0;
      for (let step = 0; step < MAX_STEPS; step++) {
        const delta = cursor.uleb();
        if (delta === 0 && step > 0) return -1;
        value += delta % 2 === 1 ? -(delta + 1) / 2 : delta / 2;
        end += cursor.uleb() * quantum;
        if (offset < end) return value;
      }
      return -1;
    });
  }
}

function isConsistent(header: Header, size: number): boolean {
  const { magic, names, units, files, programs, table, functions, entryBytes, textStart } = header;
  const isOrdered = names <= units && units <= files && files <= programs && programs <= table;
  const isInside = table + (2 * functions + 1) * entryBytes <= size;
  return isOrdered && isInside && (magic === MAGIC_1_16 || textStart !== 0);
}

/** The `_func` of one function. */
class GoFunction {
  readonly #bytes: SectionBytes;
  /** Before 1.18 it began with an address of 8 bytes; what follows has not changed. */
  readonly #at: number;
  readonly #size: number;
  readonly #isOld: boolean;

  /** `at` is its place in the table; `entry` is checked against what it says of itself. */
  constructor(bytes: SectionBytes, at: number, entry: number) {
    const magic = bytes.uint(0, 4);
    this.#isOld = magic === MAGIC_1_16;
    if (bytes.uint(at, this.#isOld ? 8 : 4) !== entry) throw new RangeError('tables contradict each other');
    this.#bytes = bytes;
    this.#at = this.#isOld ? at + 4 : at;
    this.#size = magic === MAGIC_1_20 ? 44 : 40;
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
