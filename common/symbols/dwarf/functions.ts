/**
 * The functions of one unit and what was inlined into them, by address. DIEs are walked once and in order; of each
 * function a row of numbers is kept, and its name is read when an address asks for it.
 */

import type { ByteSource } from '../../base/byte-source.ts';
import { Cursor } from '../../base/cursor.ts';
import type { AddressRange } from '../address-range.ts';
import { packColumns, unpackColumns } from '../scratch.ts';
import { type AbbrevTable, KIND_CLASS, KIND_INLINED, KIND_JUMP, KIND_SUBPROGRAM } from './abbrevs.ts';
import * as D from './constants.ts';
import { readSized, readUnsized } from './forms.ts';
import { Column, Intervals } from './intervals.ts';
import { toColumn } from './line-table.ts';
import { readRanges } from './ranges.ts';
import { highAddress, readAddress, type Unit } from './unit.ts';

const MAX_DEPTH = 2048;
/** Receivers take no more functions at one place. */
const MAX_CHAIN = 256;
const MAX_FUNCTIONS = 1 << 22;
const MAX_RANGES = 1 << 22;

/** Instead of the function to which code belongs: there is none, or it has no code of its own. */
const OUTSIDE = -1;
const WITHOUT_CODE = -2;
/** It has code, but not at the only address that is asked for. */
const ELSEWHERE = -3;

export interface FunctionRow {
  /** Offset of the DIE that leads to the name, in the file of the unit. */
  nameDie: number;
  isInlined: boolean;
  callFile: number;
  callLine: number;
  callColumn: number;
}

export class Functions {
  readonly #columns: FunctionColumns;
  readonly #intervals: Intervals;

  constructor(columns: FunctionColumns, intervals: Intervals) {
    this.#columns = columns;
    this.#intervals = intervals;
  }

  get byteLength(): number {
    return this.#columns.nameDies.length * 24 + this.#intervals.byteLength;
  }

  pack(): Uint8Array {
    const { nameDies, parents, callFiles, callLines, callColumns } = this.#columns;
    const own = [nameDies, parents, callFiles, callLines, callColumns];
    return packColumns([...own, ...this.#intervals.columns]);
  }

  static unpack(packed: ByteSource): Functions {
    const [nameDies, parents, callFiles, callLines, callColumns, ...intervals] = unpackColumns(packed, TYPES);
    const columns = { nameDies, parents, callFiles, callLines, callColumns };
    return new Functions(columns, new Intervals(...intervals));
  }

  /** The chain at an address, innermost first; empty if no function is there. */
  lookup(address: number, range?: AddressRange): FunctionRow[] {
    const { nameDies, parents, callFiles, callLines, callColumns } = this.#columns;
    const chain: FunctionRow[] = [];
    for (let i = this.#intervals.find(address, range); i >= 0 && chain.length < MAX_DEPTH; i = parents[i]!) {
      chain.push({
        nameDie: nameDies[i]!,
        isInlined: parents[i]! >= 0,
        callFile: callFiles[i]!,
        callLine: callLines[i]!,
        callColumn: callColumns[i]!,
      });
    }
    return chain.length > MAX_CHAIN ? withoutMiddle(chain) : chain;
  }
}

/** The innermost ones, and the function that all were inlined into, at the place where it says that it calls. */
function withoutMiddle(chain: readonly FunctionRow[]): FunctionRow[] {
  const [outermost, { callFile, callLine, callColumn }] = [chain.at(-1)!, chain.at(-2)!];
  const inner = chain.slice(0, MAX_CHAIN - 1);
  inner.push({ ...inner.pop()!, callFile, callLine, callColumn }, outermost);
  return inner;
}

/** Of {@link FunctionColumns}, and of {@link Intervals}. */
const TYPES = [
  Float64Array,
  Int32Array,
  Uint32Array,
  Uint32Array,
  Uint16Array,
  Float64Array,
  Float64Array,
  Uint32Array,
  Int32Array,
] as const;

interface FunctionColumns {
  nameDies: Float64Array;
  /** Into what it was inlined, -1 for a function of its own. Always smaller than its own index. */
  parents: Int32Array;
  callFiles: Uint32Array;
  callLines: Uint32Array;
  callColumns: Uint16Array;
}

/** Attributes of one function's DIE, reused for each. */
class FunctionDie {
  lowForm = 0;
  low = 0;
  highForm = 0;
  high = 0;
  rangesForm = 0;
  ranges = 0;
  origin = -1;
  sibling = -1;
  callFile = 0;
  callLine = 0;
  callColumn = 0;
  isDeclaration = false;
  /** The abstract form of an inlined function. */
  isAbstract = false;

  clear(): void {
    this.lowForm = 0;
    this.highForm = 0;
    this.rangesForm = 0;
    this.origin = -1;
    this.sibling = -1;
    this.callFile = 0;
    this.callLine = 0;
    this.callColumn = 0;
    this.isDeclaration = false;
    this.isAbstract = false;
  }

  set(name: number, form: number, value: number, unit: Unit): void {
    switch (name) {
      case D.AT_LOW_PC:
        this.lowForm = form;
        this.low = value;
        break;
      case D.AT_HIGH_PC:
        this.highForm = form;
        this.high = value;
        break;
      case D.AT_RANGES:
        this.rangesForm = form;
        this.ranges = value;
        break;
      case D.AT_ABSTRACT_ORIGIN:
      case D.AT_SPECIFICATION:
        this.origin = localReference(form, value, unit);
        break;
      case D.AT_SIBLING:
        this.sibling = localReference(form, value, unit);
        break;
      case D.AT_CALL_FILE:
        this.callFile = value;
        break;
      case D.AT_CALL_LINE:
        this.callLine = value;
        break;
      case D.AT_CALL_COLUMN:
        this.callColumn = toColumn(value);
        break;
      case D.AT_DECLARATION:
        this.isDeclaration = true;
        break;
      case D.AT_INLINE:
        this.isAbstract = true;
        break;
    }
  }
}

/** Offset in the unit's own file, -1 if the reference leads elsewhere. */
export function localReference(form: number, value: number, unit: Unit): number {
  switch (form) {
    case D.FORM_REF1:
    case D.FORM_REF2:
    case D.FORM_REF4:
    case D.FORM_REF8:
    case D.FORM_REF_UDATA:
      return unit.offset + value;
    case D.FORM_REF_ADDR:
      return value;
    default:
      return -1;
  }
}

/** Walks the DIEs of a unit. */
export class FunctionWalk {
  readonly #unit: Unit;
  readonly #abbrevs: AbbrevTable;
  readonly #isCode: (address: number) => boolean;
  readonly #only: number | undefined;
  readonly #cursor: Cursor;
  readonly #die = new FunctionDie();
  readonly #nameDies = new Column((n) => new Float64Array(n));
  readonly #parents = new Column((n) => new Int32Array(n));
  readonly #callFiles = new Column((n) => new Uint32Array(n));
  readonly #callLines = new Column((n) => new Uint32Array(n));
  readonly #callColumns = new Column((n) => new Uint16Array(n));
  readonly #starts = new Column((n) => new Float64Array(n));
  readonly #ends = new Column((n) => new Float64Array(n));
  readonly #owners = new Column((n) => new Uint32Array(n));

  /**
   * `isCode` says whether the file has code at an address. With `only`, functions whose code is elsewhere are left out
   * with all that is in them, which takes a fraction of the time. Where gcc says how far such a function goes, local
   * classes with functions of their own (lambdas) go with it: an address without a function needs a whole walk.
   */
  constructor(unit: Unit, abbrevs: AbbrevTable, isCode: (address: number) => boolean, only?: number) {
    this.#unit = unit;
    this.#abbrevs = abbrevs;
    this.#isCode = isCode;
    this.#only = only;
    const { firstDie, end, section } = unit;
    this.#cursor = new Cursor(section.bytes(firstDie, Math.min(end, section.size) - firstDie));
  }

  /** What was found up to here. */
  finish(): Functions {
    const columns: FunctionColumns = {
      nameDies: this.#nameDies.finish(),
      parents: this.#parents.finish(),
      callFiles: this.#callFiles.finish(),
      callLines: this.#callLines.finish(),
      callColumns: this.#callColumns.finish(),
    };
    const intervals = new Intervals(this.#starts.finish(), this.#ends.finish(), this.#owners.finish());
    return new Functions(columns, intervals);
  }

  /** Throws DwarfError or OutOfBounds at damage; what was found before stays. */
  run(): void {
    const cursor = this.#cursor;
    const { kinds, hasChildren } = this.#abbrevs;
    /** By depth: the function whose code the DIE belongs to. */
    const owners = new Int32Array(MAX_DEPTH).fill(OUTSIDE);
    let depth = 0;
    while (cursor.left > 0) {
      const dieAt = cursor.at;
      const code = cursor.uleb();
      if (code === 0) {
        if (--depth <= 0) return;
        continue;
      }
      const row = this.#abbrevs.find(code);
      if (row < 0) throw new D.DwarfError(`abbreviation ${code} is not in the table`);
      const kind = kinds[row]!;
      let owner = owners[depth]!;
      if (kind === KIND_SUBPROGRAM || (kind === KIND_INLINED && owner !== ELSEWHERE)) {
        this.#readDie(row);
        owner = this.#addFunction(dieAt, kind, owner);
        // gcc puts the code of a lambda under the abstract form of the function that it is in
        const isBarren = this.#die.isDeclaration || owner === ELSEWHERE;
        if (hasChildren[row]! && isBarren && this.#jump()) continue;
      } else if (kind === KIND_JUMP || (kind === KIND_CLASS && owner === OUTSIDE)) {
        this.#readDie(row);
        if (hasChildren[row]! && this.#jump()) continue;
      } else this.#skipDie(row);
      if (!hasChildren[row]!) {
        if (depth === 0) return;
        continue;
      }
      if (++depth >= MAX_DEPTH) throw new D.DwarfError(`DIEs that nest ${MAX_DEPTH} deep`);
      owners[depth] = owner;
    }
  }

  #skipDie(row: number): void {
    const { fixedSizes, attributeStarts, forms, sizes } = this.#abbrevs;
    const cursor = this.#cursor;
    const fixed = fixedSizes[row]!;
    if (fixed >= 0) {
      cursor.skip(fixed);
      return;
    }
    const end = attributeStarts[row + 1]!;
    // those of fixed sizes between others are skipped together
    let pending = 0;
    for (let i = attributeStarts[row]!; i < end; i++) {
      const size = sizes[i]!;
      if (size >= 0) {
        pending += size;
        continue;
      }
      if (pending > 0) cursor.skip(pending);
      pending = 0;
      readUnsized(cursor, forms[i]!, this.#unit);
    }
    if (pending > 0) cursor.skip(pending);
  }

  #readDie(row: number): void {
    const { attributeStarts, names, forms, sizes, implicit } = this.#abbrevs;
    const die = this.#die;
    const cursor = this.#cursor;
    die.clear();
    const end = attributeStarts[row + 1]!;
    for (let i = attributeStarts[row]!; i < end; i++) {
      const form = forms[i]!;
      const size = sizes[i]!;
      const value =
        form === D.FORM_IMPLICIT_CONST
          ? implicit[i]!
          : size >= 0
            ? readSized(cursor, size)
            : readUnsized(cursor, form, this.#unit);
      die.set(names[i]!, form, value, this.#unit);
    }
  }

  /** Past the descendants of the DIE that was read; false where it doesn't say where they end. */
  #jump(): boolean {
    const at = this.#die.sibling - this.#unit.firstDie;
    if (!(at > this.#cursor.at && at <= this.#cursor.end)) return false;
    this.#cursor.at = at;
    return true;
  }

  /** The function to which the code of descendants belongs. */
  #addFunction(dieAt: number, kind: number, owner: number): number {
    const die = this.#die;
    const isInlined = kind === KIND_INLINED;
    const none = isInlined ? owner : WITHOUT_CODE;
    if (die.isDeclaration || die.isAbstract || (die.lowForm === 0 && die.rangesForm === 0)) return none;
    const before = this.#starts.length;
    const index = this.#nameDies.length;
    if (index >= MAX_FUNCTIONS) throw new D.DwarfError(`more than ${MAX_FUNCTIONS} functions in a unit`);
    this.#addRanges(index);
    if (this.#starts.length === before) return none;
    if (!isInlined && this.#only !== undefined && !this.#covers(before, this.#only)) {
      for (const column of [this.#starts, this.#ends, this.#owners]) column.length = before;
      return ELSEWHERE;
    }
    // the root DIE itself is at 0 of the cursor
    this.#nameDies.push(die.origin >= 0 ? die.origin : this.#unit.firstDie + dieAt);
    this.#parents.push(isInlined ? owner : OUTSIDE);
    this.#callFiles.push(die.callFile);
    this.#callLines.push(die.callLine);
    this.#callColumns.push(die.callColumn);
    return index;
  }

  /** Whether one of the ranges from `first` on does. */
  #covers(first: number, address: number): boolean {
    for (let i = first; i < this.#starts.length; i++)
      if (address >= this.#starts.values[i]! && address < this.#ends.values[i]!) return true;
    return false;
  }

  #addRanges(index: number): void {
    const die = this.#die;
    const unit = this.#unit;
    if (die.rangesForm !== 0)
      readRanges(unit, die.rangesForm, die.ranges, (start, end) => this.#addRange(index, start, end));
    else if (die.highForm !== 0) {
      const low = readAddress(unit, die.lowForm, die.low);
      this.#addRange(index, low, highAddress(unit, low, die.highForm, die.high));
    }
  }

  #addRange(index: number, start: number, end: number): void {
    if (!(end > start && this.#isCode(start))) return;
    if (this.#starts.length >= MAX_RANGES) throw new D.DwarfError(`more than ${MAX_RANGES} ranges in a unit`);
    this.#starts.push(start);
    this.#ends.push(end);
    this.#owners.push(index);
  }
}
