/** How attribute values are written: DWARF 5, section 7.5.6. */
import type { Cursor } from '../../base/cursor.ts';
import * as F from './constants.ts';

/** What the size of a value depends on. */
export interface Encoding {
  version: number;
  /** 4, or 8 in the 64-bit DWARF format. */
  offsetSize: number;
  addressSize: number;
}

/** Bytes of a value, -1 where that depends on the value. */
export function formSize(form: number, encoding: Encoding): number {
  switch (form) {
    case F.FORM_FLAG_PRESENT:
    case F.FORM_IMPLICIT_CONST:
      return 0;
    case F.FORM_DATA1:
    case F.FORM_FLAG:
    case F.FORM_REF1:
    case F.FORM_STRX1:
    case F.FORM_ADDRX1:
      return 1;
    case F.FORM_DATA2:
    case F.FORM_REF2:
    case F.FORM_STRX2:
    case F.FORM_ADDRX2:
      return 2;
    case F.FORM_STRX3:
    case F.FORM_ADDRX3:
      return 3;
    case F.FORM_DATA4:
    case F.FORM_REF4:
    case F.FORM_REF_SUP4:
    case F.FORM_STRX4:
    case F.FORM_ADDRX4:
      return 4;
    case F.FORM_DATA8:
    case F.FORM_REF8:
    case F.FORM_REF_SIG8:
    case F.FORM_REF_SUP8:
      return 8;
    case F.FORM_DATA16:
      return 16;
    case F.FORM_ADDR:
      return encoding.addressSize;
    case F.FORM_REF_ADDR:
      // DWARF 2 wrote an address here
      return encoding.version === 2 ? encoding.addressSize : encoding.offsetSize;
    case F.FORM_STRP:
    case F.FORM_SEC_OFFSET:
    case F.FORM_STRP_SUP:
    case F.FORM_LINE_STRP:
    case F.FORM_GNU_REF_ALT:
    case F.FORM_GNU_STRP_ALT:
      return encoding.offsetSize;
    default:
      return -1;
  }
}

/** A form of `FORM_INDIRECT` may not be indirect again, nor have its value in the abbreviation. */
function indirectForm(cursor: Cursor): number {
  const form = cursor.uleb();
  if (form === F.FORM_INDIRECT || form === F.FORM_IMPLICIT_CONST)
    throw new F.DwarfError(`an indirect form of form ${form}`);
  return form;
}

/** A value of so many bytes; where it is too long for a number, its position. */
export function readSized(cursor: Cursor, size: number): number {
  switch (size) {
    case 0:
      return 1;
    case 1:
      return cursor.u8();
    case 2:
      return cursor.u16();
    case 3:
      return cursor.u16() + cursor.u8() * 65_536;
    case 4:
      return cursor.u32();
    case 8:
      return cursor.u64();
    default:
      return cursor.skip(size);
  }
}

/**
 * A value as a number: constants, addresses, references and indices as they stand; for blocks and strings the
 * position in the cursor's bytes where they begin (blocks: where their length stands).
 */
export function readForm(cursor: Cursor, form: number, encoding: Encoding): number {
  const size = formSize(form, encoding);
  return size >= 0 ? readSized(cursor, size) : readUnsized(cursor, form, encoding);
}

/** The same, of a form whose size depends on the value. */
export function readUnsized(cursor: Cursor, form: number, encoding: Encoding): number {
  const at = cursor.at;
  switch (form) {
    case F.FORM_UDATA:
    case F.FORM_REF_UDATA:
    case F.FORM_STRX:
    case F.FORM_ADDRX:
    case F.FORM_LOCLISTX:
    case F.FORM_RNGLISTX:
    case F.FORM_GNU_ADDR_INDEX:
    case F.FORM_GNU_STR_INDEX:
      return cursor.uleb();
    case F.FORM_SDATA:
      return cursor.sleb();
    case F.FORM_STRING:
      skipString(cursor);
      return at;
    case F.FORM_BLOCK1:
      cursor.skip(cursor.u8());
      return at;
    case F.FORM_BLOCK2:
      cursor.skip(cursor.u16());
      return at;
    case F.FORM_BLOCK4:
      cursor.skip(cursor.u32());
      return at;
    case F.FORM_BLOCK:
    case F.FORM_EXPRLOC:
      cursor.skip(cursor.uleb());
      return at;
    case F.FORM_INDIRECT:
      return readForm(cursor, indirectForm(cursor), encoding);
    default:
      throw new F.DwarfError(`form 0x${form.toString(16)} is not known`);
  }
}

function skipString(cursor: Cursor): void {
  const nul = cursor.bytes.indexOf(0, cursor.at);
  cursor.skip((nul < 0 ? cursor.end : nul) + 1 - cursor.at);
}

/** Whether a value is an index into .debug_addr. */
export const isAddressIndex = (form: number): boolean =>
  form === F.FORM_ADDRX || form === F.FORM_GNU_ADDR_INDEX || (form >= F.FORM_ADDRX1 && form <= F.FORM_ADDRX4);

/** Whether a value is an index into .debug_str_offsets. */
export const isStringIndex = (form: number): boolean =>
  form === F.FORM_STRX || form === F.FORM_GNU_STR_INDEX || (form >= F.FORM_STRX1 && form <= F.FORM_STRX4);
