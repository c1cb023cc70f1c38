/** Which unit an address belongs to: by .debug_aranges, else by the first DIEs of the units that have none there. */
import type { Cursor } from '../../base/cursor.ts';
import type { AddressRange } from '../address-range.ts';
import type { SectionBytes } from '../section-bytes.ts';
import { DwarfError } from './constants.ts';
import { Column, Intervals } from './intervals.ts';
import { readRanges } from './ranges.ts';
import { isTypeUnit, type Unit } from './unit.ts';
import type { UnitList } from './unit-list.ts';

const MAX_RANGES = 1 << 22;
const MAX_ARANGES_SET = 64 << 20;

export class UnitIndex {
  readonly #units: UnitList;
  readonly #isCode: (address: number) => boolean;
  #quick: Intervals | undefined;
  /** Of units that .debug_aranges leave out, as clang's and rustc's: gcc and gas tell all code of theirs. */
  #rest: Intervals | undefined;

  constructor(units: UnitList, isCode: (address: number) => boolean) {
    this.#units = units;
    this.#isCode = isCode;
  }

  get byteLength(): number {
    return (this.#quick?.byteLength ?? 0) + (this.#rest?.byteLength ?? 0);
  }

  /**
   * Offsets of the units that claim an address, the narrowest claim first, until `visit` is true. Narrows `range` to
   * addresses that the same ones claim.
   */
  visit(address: number, visit: (unitOffset: number) => boolean, range?: AddressRange): void {
    let isClaimed = false;
    this.#quick ??= readAranges(this.#aranges(), this.#isCode);
    const visitQuick = (offset: number): boolean => {
      isClaimed = true;
      return visit(offset);
    };
    this.#quick.visit(address, visitQuick, range);
    if (isClaimed) return;
    this.#rest ??= this.#readRest(this.#quick);
    this.#rest.visit(address, visit, range);
  }

  #aranges(): SectionBytes {
    return this.#units.file.section('aranges');
  }

  #readRest(quick: Intervals): Intervals {
    const columns = new RangeColumns(this.#isCode);
    const known = new Set(quick.values);
    for (const offset of this.#units.offsets) {
      if (known.has(offset)) continue;
      try {
        const unit = this.#units.unit(offset);
        if (!isTypeUnit(unit)) addUnit(unit, columns);
      } catch (error) {
        // one unit less
        if (!(error instanceof Error)) throw error;
      }
    }
    return columns.finish();
  }
}

class RangeColumns {
  readonly #starts = new Column((n) => new Float64Array(n));
  readonly #ends = new Column((n) => new Float64Array(n));
  readonly #units = new Column((n) => new Uint32Array(n));
  readonly #isCode: (address: number) => boolean;

  constructor(isCode: (address: number) => boolean) {
    this.#isCode = isCode;
  }

  add(start: number, end: number, unitOffset: number): void {
    if (!(end > start && this.#isCode(start))) return;
    if (this.#starts.length >= MAX_RANGES) throw new DwarfError(`more than ${MAX_RANGES} ranges of units`);
    this.#starts.push(start);
    this.#ends.push(end);
    this.#units.push(unitOffset);
  }

  finish(): Intervals {
    return new Intervals(this.#starts.finish(), this.#ends.finish(), this.#units.finish());
  }
}

function addUnit(unit: Unit, columns: RangeColumns): void {
  if (unit.rangesForm !== 0)
    readRanges(unit, unit.rangesForm, unit.rangesValue, (start, end) => columns.add(start, end, unit.offset));
  else columns.add(unit.lowPc, unit.highPc, unit.offset);
}

/** DWARF 5, section 6.1.2. Sets that are damaged end the reading: the other units are found by their DIEs. */
function readAranges(section: SectionBytes, isCode: (address: number) => boolean): Intervals {
  const columns = new RangeColumns(isCode);
  try {
    for (let at = 0; at < section.size; ) {
      const limit = Math.min(section.size, at + MAX_ARANGES_SET);
      const set = section.parse(at, limit, readArangesSet);
      for (let i = 0; i < set.ranges.length; i += 2)
        columns.add(set.ranges[i]!, set.ranges[i]! + set.ranges[i + 1]!, set.unit);
      at += set.bytes;
    }
  } catch (error) {
    if (!(error instanceof Error)) throw error;
  }
  return columns.finish();
}

/** `ranges` are pairs of address and length. */
function readArangesSet(cursor: Cursor): { unit: number; ranges: number[]; bytes: number } {
  let [length, offsetSize] = [cursor.u32(), 4];
  if (length === 0xffff_ffff) [length, offsetSize] = [cursor.u64(), 8];
  const bytes = cursor.at + length;
  cursor.skip(2);
  const unit = offsetSize === 8 ? cursor.u64() : cursor.u32();
  const addressSize = cursor.u8();
  cursor.skip(1);
  if (addressSize !== 8 && addressSize !== 4) throw new DwarfError(`addresses of ${addressSize} bytes`);
  const tuple = addressSize * 2;
  cursor.at += (tuple - (cursor.at % tuple)) % tuple;
  const ranges: number[] = [];
  const read = (): number => (addressSize === 8 ? cursor.u64() : cursor.u32());
  while (cursor.at + tuple <= bytes) {
    const [start, size] = [read(), read()];
    if (size > 0) ranges.push(start, size);
  }
  return { unit, ranges, bytes };
}
