/** ELF notes: sizes of name and descriptor and a type (u32 each), then both, each filled up to four bytes. */
import { Cursor } from '../base/cursor.ts';

export interface ElfNote {
  /** Without its NUL. */
  name: string;
  type: number;
  descriptor: Uint8Array;
}

const HEADER_BYTES = 12;

/** In order. Throws OutOfBounds behind the last one that is whole, where something follows it. */
export function* readNotes(bytes: Uint8Array): Generator<ElfNote> {
  const cursor = new Cursor(bytes);
  while (cursor.left >= HEADER_BYTES) {
    const nameSize = cursor.u32();
    const size = cursor.u32();
    const type = cursor.u32();
    const name = part(cursor, bytes, nameSize);
    const descriptor = part(cursor, bytes, size);
    yield { name: Buffer.from(name).toString('latin1').replace(/\0+$/, ''), type, descriptor };
  }
}

function part(cursor: Cursor, bytes: Uint8Array, size: number): Uint8Array {
  const at = cursor.skip(size);
  cursor.skip(Math.min(-size & 3, cursor.left));
  return bytes.subarray(at, at + size);
}
