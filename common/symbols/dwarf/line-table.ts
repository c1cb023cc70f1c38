/** Which file and line an address was compiled from: .debug_line of DWARF 2 to 5, sections 6.2. */

import type { ByteSource } from '../../base/byte-source.ts';
import type { Cursor } from '../../base/cursor.ts';
import { lastAtOrBelow } from '../../base/search.ts';
import type { AddressRange } from '../address-range.ts';
import { packColumns, unpackColumns } from '../scratch.ts';
import { DwarfError } from './constants.ts';
import type { FileNames } from './file-names.ts';
import { Column, Intervals } from './intervals.ts';

/** How a program of lines is to be read. */
export interface LineHeader {
  minInstruction: number;
  lineBase: number;
  lineRange: number;
  opcodeBase: number;
  /** By opcode. */
  operandCounts: number[];
}

const MAX_ROWS = 1 << 23;
const MAX_SEQUENCES = 1 << 20;
const MAX_COLUMN = 0xffff;

/** 0, as DWARF has it where a column is not known, for one that two bytes do not hold, as in a program of one line. */
export const toColumn = (column: number): number => (column >= 0 && column <= MAX_COLUMN ? column : 0);

export interface LineRow {
  file: number;
  line: number;
  column: number;
}

/** Of {@link LineColumns}, of the first rows of sequences, and of {@link Intervals}. */
const TYPES = [
  Float64Array,
  Uint32Array,
  Uint32Array,
  Uint16Array,
  Uint32Array,
  Float64Array,
  Float64Array,
  Uint32Array,
  Int32Array,
] as const;

export class LineTable {
  readonly files: FileNames;
  readonly #rows: LineColumns;
  /** Values are indices of sequences. */
  readonly #sequences: Intervals;
  readonly #firstRows: Uint32Array;

  constructor(files: FileNames, rows: LineColumns, firstRows: Uint32Array, sequences: Intervals) {
    this.files = files;
    this.#rows = rows;
    this.#sequences = sequences;
    this.#firstRows = firstRows;
  }

  static of(files: FileNames, program: LineProgram): LineTable {
    const { starts, ends, firstRows } = program.sequences;
    const indices = Uint32Array.from({ length: starts.length }, (_, i) => i);
    const sequences = new Intervals(starts.finish(), ends.finish(), indices);
    return new LineTable(files, program.columns(), firstRows.finish(), sequences);
  }

  /** Without the names of files. */
  pack(): Uint8Array {
    const { addresses, files, lines, columns } = this.#rows;
    return packColumns([addresses, files, lines, columns, this.#firstRows, ...this.#sequences.columns]);
  }

  static unpack(names: FileNames, packed: ByteSource): LineTable {
    const [addresses, files, lines, columns, firstRows, ...sequences] = unpackColumns(packed, TYPES);
    return new LineTable(names, { addresses, files, lines, columns }, firstRows, new Intervals(...sequences));
  }

  get byteLength(): number {
    return this.#rows.addresses.length * 18 + this.#sequences.byteLength + this.files.byteLength;
  }

  /** Narrows `range` to addresses of the same row. */
  lookup(address: number, range?: AddressRange): LineRow | undefined {
    const sequence = this.#sequences.find(address, range);
    if (sequence < 0) return undefined;
    const { addresses, files, lines, columns } = this.#rows;
    const first = this.#firstRows[sequence]!;
    const end = this.#firstRows[sequence + 1] ?? addresses.length;
    const i = lastAtOrBelow(addresses, address, first, end);
    if (i < 0) range?.narrow(0, addresses[first]!);
    else range?.narrow(addresses[i]!, i + 1 < end ? addresses[i + 1]! : Number.MAX_SAFE_INTEGER);
    return i < 0 ? undefined : { file: files[i]!, line: lines[i]!, column: columns[i]! };
  }
}

interface LineColumns {
  addresses: Float64Array;
  files: Uint32Array;
  lines: Uint32Array;
  columns: Uint16Array;
}

const makeRows = (length: number): LineColumns => ({
  addresses: new Float64Array(length),
  files: new Uint32Array(length),
  lines: new Uint32Array(length),
  columns: new Uint16Array(length),
});

/** The first `length` rows, or all of them and room for more. */
function resizeRows(rows: LineColumns, length: number): LineColumns {
  const resized = makeRows(length);
  for (const key of ['addresses', 'files', 'lines', 'columns'] as const)
    resized[key].set(length < rows[key].length ? rows[key].subarray(0, length) : rows[key]);
  return resized;
}

/**
 * Runs a line number program and keeps the last row of each address. For one address (`only`), just the row that holds
 * there, and no further than behind it: a program of a whole library takes as long to run as Node to start.
 */
export class LineProgram {
  readonly sequences = {
    starts: new Column((n) => new Float64Array(n)),
    ends: new Column((n) => new Float64Array(n)),
    firstRows: new Column((n) => new Uint32Array(n)),
  };
  #rows = makeRows(1024);
  #count = 0;
  readonly #header: LineHeader;
  readonly #isCode: (address: number) => boolean;
  readonly #only: number | undefined;
  #isDone = false;
  /** Of the sequence under way. */
  #first = 0;
  #start = 0;
  #address = 0;
  #file = 1;
  #line = 1;
  #column = 0;

  constructor(header: LineHeader, isCode: (address: number) => boolean, only?: number) {
    this.#header = header;
    this.#isCode = isCode;
    this.#only = only;
  }

  columns(): LineColumns {
    return resizeRows(this.#rows, this.#count);
  }

  run(cursor: Cursor): void {
    const { opcodeBase, lineBase, lineRange, minInstruction } = this.#header;
    const constAdvance = Math.floor((255 - opcodeBase) / lineRange) * minInstruction;
    // what each special opcode adds, worked out once and not for each of some hundred thousand rows
    const addressSteps = new Float64Array(256);
    const lineSteps = new Int32Array(256);
    for (let opcode = opcodeBase; opcode < 256; opcode++) {
      const adjusted = opcode - opcodeBase;
      addressSteps[opcode] = Math.floor(adjusted / lineRange) * minInstruction;
      lineSteps[opcode] = lineBase + (adjusted % lineRange);
    }
    while (cursor.at < cursor.end && !this.#isDone) {
      const opcode = cursor.u8();
      if (opcode >= opcodeBase) {
        this.#address += addressSteps[opcode]!;
        this.#line += lineSteps[opcode]!;
        this.#emit();
      } else if (opcode === 0) this.#runExtended(cursor);
      else this.#runStandard(cursor, opcode, constAdvance);
    }
  }

  #runStandard(cursor: Cursor, opcode: number, constAdvance: number): void {
    switch (opcode) {
      case 1: // copy
        this.#emit();
        return;
      case 2: // advance_pc
        this.#address += cursor.uleb() * this.#header.minInstruction;
        return;
      case 3: // advance_line
        this.#line += cursor.sleb();
        return;
      case 4: // set_file
        this.#file = cursor.uleb();
        return;
      case 5: // set_column
        this.#column = toColumn(cursor.uleb());
        return;
      case 8: // const_add_pc
        this.#address += constAdvance;
        return;
      case 9: // fixed_advance_pc
        this.#address += cursor.u16();
        return;
      default:
        // is_stmt, basic block, prologue end, epilogue begin, isa, and what came later: their operands only
        for (let n = this.#header.operandCounts[opcode] ?? 0; n > 0; n--) cursor.uleb();
    }
  }

  #runExtended(cursor: Cursor): void {
    const length = cursor.uleb();
    const end = cursor.at + length;
    if (length > cursor.left) cursor.skip(length);
    if (length === 0) return;
    const opcode = cursor.u8();
    if (opcode === 1) this.#endSequence();
    else if (opcode === 2) this.#address = length - 1 === 4 ? cursor.u32() : cursor.u64();
    cursor.at = end;
  }

  #emit(): void {
    const address = this.#address;
    if (this.#only !== undefined && address > this.#only) {
      if (this.#count > this.#first && this.#isCode(this.#start)) this.#endSequence();
      return;
    }
    let i = this.#count;
    if (i > this.#first && (address <= this.#rows.addresses[i - 1]! || this.#only !== undefined)) {
      // a row of the same address replaces it; rows that go backwards are against the standard
      if (address < this.#rows.addresses[--i]!) return;
      this.#rows.addresses[i] = address;
    } else {
      if (i >= MAX_ROWS) throw new DwarfError(`a line table of more than ${MAX_ROWS} rows`);
      if (i === this.#rows.addresses.length) this.#rows = resizeRows(this.#rows, i * 2);
      if (i === this.#first) this.#start = address;
      this.#rows.addresses[i] = address;
      this.#count++;
    }
    this.#rows.files[i] = this.#file;
    this.#rows.lines[i] = this.#line;
    this.#rows.columns[i] = this.#column;
  }

  /** Sequences of functions that the linker dropped start where no code is. */
  #endSequence(): void {
    const start = this.#start;
    const hasRows = this.#count > this.#first && this.#address > Math.max(start, this.#only ?? 0);
    if (hasRows && this.#isCode(start)) {
      this.#isDone = this.#only !== undefined;
      if (this.sequences.starts.length >= MAX_SEQUENCES)
        throw new DwarfError(`a line table of more than ${MAX_SEQUENCES} sequences`);
      this.sequences.starts.push(start);
      this.sequences.ends.push(this.#address);
      this.sequences.firstRows.push(this.#first);
      this.#first = this.#count;
    } else this.#count = this.#first;
    this.#address = 0;
    this.#file = 1;
    this.#line = 1;
    this.#column = 0;
  }
}
