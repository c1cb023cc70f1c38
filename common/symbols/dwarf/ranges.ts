/** Lists of address ranges: .debug_ranges (DWARF 4, section 2.17.3) and .debug_rnglists (DWARF 5, section 2.17.3). */
import type { Cursor } from '../../base/cursor.ts';
import { DwarfError, FORM_ADDRX, FORM_RNGLISTX } from './constants.ts';
import { readAddress, type Unit } from './unit.ts';

const MAX_RANGES = 1 << 18;

export type Emit = (start: number, end: number) => void;

/** Calls `emit` with the ranges that a DW_AT_ranges names. */
export function readRanges(unit: Unit, form: number, value: number, emit: Emit): void {
  const found = collectRanges(unit, form, value);
  for (let i = 0; i < found.length; i += 2) emit(found[i]!, found[i + 1]!);
}

/** Starts and ends in turn. */
function collectRanges(unit: Unit, form: number, value: number): number[] {
  if (unit.version < 5) {
    const section = unit.addressFile.section('ranges');
    const at = value + (unit.file.isSplit ? unit.rangesBase : 0);
    return section.parseNear(at, section.size, (cursor) => readPairs(cursor, unit));
  }
  const section = unit.file.section('rnglists');
  const at = form === FORM_RNGLISTX ? listOffset(unit, value) : value;
  return section.parseNear(at, section.size, (cursor) => readList(cursor, unit));
}

function listOffset(unit: Unit, index: number): number {
  const at = unit.rnglistsBase + index * unit.offsetSize;
  return unit.rnglistsBase + unit.file.section('rnglists').uint(at, unit.offsetSize);
}

const address = (cursor: Cursor, size: number): number => (size === 8 ? cursor.u64() : cursor.u32());

function readPairs(cursor: Cursor, unit: Unit): number[] {
  const found: number[] = [];
  const newBase = unit.addressSize === 8 ? 2 ** 64 : 2 ** 32 - 1;
  let base = unit.lowPc;
  for (let n = 0; n < MAX_RANGES; n++) {
    const start = address(cursor, unit.addressSize);
    const end = address(cursor, unit.addressSize);
    if (start === 0 && end === 0) return found;
    if (start === newBase) base = end;
    else if (end > start) found.push(base + start, base + end);
  }
  throw new DwarfError(`a list of more than ${MAX_RANGES} ranges`);
}

function readList(cursor: Cursor, unit: Unit): number[] {
  const found: number[] = [];
  const indexed = (): number => readAddress(unit, FORM_ADDRX, cursor.uleb());
  let base = unit.lowPc;
  const push = (start: number, end: number): void => {
    if (end > start) found.push(start, end);
  };
  for (let n = 0; n < MAX_RANGES; n++) {
    const kind = cursor.u8();
    let start: number;
    switch (kind) {
      case 0: // end of list
        return found;
      case 1: // base_addressx
        base = indexed();
        break;
      case 2: // startx_endx
        start = indexed();
        push(start, indexed());
        break;
      case 3: // startx_length
        start = indexed();
        push(start, start + cursor.uleb());
        break;
      case 4: // offset_pair
        start = base + cursor.uleb();
        push(start, base + cursor.uleb());
        break;
      case 5: // base_address
        base = address(cursor, unit.addressSize);
        break;
      case 6: // start_end
        start = address(cursor, unit.addressSize);
        push(start, address(cursor, unit.addressSize));
        break;
      case 7: // start_length
        start = address(cursor, unit.addressSize);
        push(start, start + cursor.uleb());
        break;
      default:
        throw new DwarfError(`a range list entry of kind ${kind}`);
    }
  }
  throw new DwarfError(`a list of more than ${MAX_RANGES} ranges`);
}
