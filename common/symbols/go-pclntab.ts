/**
 * Names, lines and inlined calls of Go programs, from the table that the runtime itself needs: it is there in
 * stripped programs, too. Layout: Go's src/internal/abi/symtab.go and src/runtime/symtab.go, of Go 1.18 (magic
 * 0xfffffff0) and of 1.20 and later (0xfffffff1).
 *
 * A function has small programs that give a number for each of its addresses: file, line, and which inlined call
 * the address belongs to. Inlined calls form a tree; each says at which address of the function it was made, and
 * the file and line of that address are those of the call.
 */
import { ElfError, type ElfFile } from '../elf/elf.ts';
import { OutOfBounds } from '../elf/source.ts';
import { findGoModule, type GoModule } from './go-module.ts';
import type { SymbolFrame, SymbolSource } from './source.ts';

const MAGIC_1_18 = 0xfffffff0;
const MAGIC_1_20 = 0xfffffff1;
const HEADER_BYTES = 72;
const MAX_TABLE_BYTES = 256 << 20;
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
    const bytes = elf.sectionData(section, MAX_TABLE_BYTES);
    const module = findGoModule(elf, section.addr);
    return GoTable.open(bytes, module);
  } catch (error) {
    if (error instanceof OutOfBounds || error instanceof ElfError || error instanceof RangeError)
      return undefined;
    throw error;
  }
}

interface Header {
  magic: number;
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
  readonly byteLength: number;
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #header: Header;
  readonly #module: GoModule;

  private constructor(bytes: Uint8Array, view: DataView, header: Header, module: GoModule) {
    this.#bytes = bytes;
    this.#view = view;
    this.#header = header;
    this.#module = module;
    this.byteLength = bytes.length;
  }

  static open(bytes: Uint8Array, module: GoModule): GoTable | undefined {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const magic = view.getUint32(0, true);
    if (magic !== MAGIC_1_18 && magic !== MAGIC_1_20) return undefined;
    const word = (i: number): number => Number(view.getBigUint64(8 + 8 * i, true));
    const header: Header = {
      magic,
      quantum: bytes[6]!,
      functions: word(0),
      // since Go 1.26 it is 0, and only the module knows
      textStart: word(2) || module.text,
      names: word(3),
      units: word(4),
      files: word(5),
      programs: word(6),
      table: word(7),
    };
    const { names, units, files, programs, table, functions } = header;
    const isOrdered = names <= units && units <= files && files <= programs && programs <= table;
    if (!isOrdered || table + (functions + 1) * 8 > bytes.length || header.textStart === 0) return undefined;
    return new GoTable(bytes, view, header, module);
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
    const entry = this.#view.getUint32(table + 8 * index, true);
    const func = new GoFunction(this.#view, table + this.#view.getUint32(table + 8 * index + 4, true), entry);
    return this.#chain(func, offset - entry);
  }

  /** The function that contains an offset of the text, -1 if none: the last entry is where all of them end. */
  #find(offset: number): number {
    const { functions, table } = this.#header;
    let low = 0;
    let high = functions + 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#view.getUint32(table + 8 * middle, true) <= offset) low = middle + 1;
      else high = middle;
    }
    return low > functions || low === 0 ? -1 : low - 1;
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
    const offset = this.#view.getUint32(units + 4 * (func.unit + index), true);
    return offset === NO_DATA ? '' : this.#text(files + offset);
  }

  #text(at: number): string {
    const end = this.#bytes.indexOf(0, at);
    if (at < 0 || end < 0) throw new RangeError('no text');
    return Buffer.from(this.#bytes.subarray(at, Math.min(end, at + MAX_NAME))).toString();
  }

  /** Runs a program up to an offset of its function; -1 where it has no value. */
  #value(program: number, offset: number): number {
    if (program === 0) return -1;
    let at = this.#header.programs + program;
    let value = -1;
    let end = 0;
    const varint = (): number => {
      let result = 0;
      for (let shift = 0; shift < 35; shift += 7) {
        const byte = this.#view.getUint8(at++);
        result += (byte & 0x7f) * 2 ** shift;
        if (byte < 0x80) return result;
      }
      throw new RangeError('no number');
    };
    for (let step = 0; step < MAX_STEPS; step++) {
      const delta = varint();
      if (delta === 0 && step > 0) return -1;
      value += delta % 2 === 1 ? -(delta + 1) / 2 : delta / 2;
      end += varint() * this.#header.quantum;
      if (offset < end) return value;
    }
    return -1;
  }
}

/** The `_func` of one function. */
class GoFunction {
  readonly #view: DataView;
  readonly #at: number;
  readonly #size: number;

  /** `at` is its place in the table; `entry` is checked against what it says of itself. */
  constructor(view: DataView, at: number, entry: number) {
    if (view.getUint32(at, true) !== entry) throw new RangeError('tables contradict each other');
    const hasStartLine = view.getUint32(0, true) === MAGIC_1_20;
    this.#view = view;
    this.#at = at;
    this.#size = hasStartLine ? 44 : 40;
  }

  get nameOffset(): number {
    return this.#view.getInt32(this.#at + 4, true);
  }

  get fileProgram(): number {
    return this.#view.getUint32(this.#at + 20, true);
  }

  get lineProgram(): number {
    return this.#view.getUint32(this.#at + 24, true);
  }

  /** Index of its compilation unit's first file. */
  get unit(): number {
    return this.#view.getUint32(this.#at + 32, true);
  }

  get #programs(): number {
    return this.#view.getUint32(this.#at + 28, true);
  }

  /** A program of its own, 0 if there is none. */
  data(index: number): number {
    return index < this.#programs ? this.#view.getUint32(this.#at + this.#size + 4 * index, true) : 0;
  }

  /** Offset of data in the module, {@link NO_DATA} if there is none. */
  functionData(index: number): number {
    if (index >= this.#view.getUint8(this.#at + this.#size - 1)) return NO_DATA;
    return this.#view.getUint32(this.#at + this.#size + 4 * (this.#programs + index), true);
  }
}
