/** Pointer encodings of exception frames: Linux Standard Base, "DWARF Exception Header Encoding". */
import type { Cursor } from '../base/cursor.ts';
import { ElfError } from './elf.ts';

export const DW_EH_PE_OMIT = 0xff;
export const DW_EH_PE_PCREL = 0x10;
export const DW_EH_PE_DATAREL = 0x30;
const DW_EH_PE_ALIGNED = 0x50;

/** The number as it stands; throws {@link ElfError} for a format that does not exist. */
export function readEncoded(cursor: Cursor, encoding: number): number {
  switch (encoding & 0x0f) {
    case 0x00:
    case 0x04:
      return cursor.u64();
    case 0x01:
      return cursor.uleb();
    case 0x02:
      return cursor.u16();
    case 0x03:
      return cursor.u32();
    case 0x09:
      return cursor.sleb();
    case 0x0a:
      return cursor.i16();
    case 0x0b:
      return cursor.i32();
    case 0x08:
    case 0x0c:
      return cursor.i64();
    default:
      throw new ElfError(`pointer format ${encoding & 0x0f}`);
  }
}

/** Moves over a pointer whose value is of no interest, whatever it is relative to. */
export function skipEncoded(cursor: Cursor, encoding: number, sectionAddress: number): void {
  if (encoding === DW_EH_PE_OMIT) return;
  if (encoding === DW_EH_PE_ALIGNED) {
    cursor.skip(7 - ((sectionAddress + cursor.at + 7) % 8));
    cursor.skip(8);
  } else readEncoded(cursor, encoding);
}
