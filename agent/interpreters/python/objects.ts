/**
 * Is what stands at an address an object that lives, and of which type? A freed one mostly still looks as it did, but the
 * allocator keeps a pointer or a key of its own in its first words: pymalloc in place of the reference count, glibc
 * in place of the type, too. Source: Include/object.h, Include/cpython/object.h (PyTypeObject), Objects/obmalloc.c.
 */
import type { ProcessMemory } from '../contract.ts';

export type ObjectType = 'code' | 'str' | 'bytes' | 'other';

/** Of PyTypeObject, behind the header of an object with a size. */
const NAME = 0;
const FLAGS = 18 * 8;
const BYTES_SUBCLASS = 1 << 27;
const UNICODE_SUBCLASS = 1 << 28;
const CODE_NAME = 'code\0';
/** A process has three, and one for each subclass that its names are of. */
const MAX_TYPES = 64;

/** Of one process. */
export class ObjectTypes {
  readonly #known = new Map<number, ObjectType>();

  /** Of the object whose first bytes are given; undefined where it was freed. `typeAt`: where its type stands. */
  typeOf(memory: ProcessMemory, object: DataView, typeAt: number): ObjectType | undefined {
    if (isFreed(object, typeAt)) return undefined;
    const address = pointerAt(object, typeAt);
    let type = this.#known.get(address);
    if (!type) {
      type = readType(memory, address, typeAt);
      if (!type) return undefined;
      if (this.#known.size >= MAX_TYPES) this.#known.clear();
      this.#known.set(address, type);
    }
    return type;
  }
}

/**
 * A count is never 0, and has 32 bits at most; from 3.14 on flags stand in the upper 16 of 64. Free-threaded builds, whose
 * type stands further back, have another count.
 */
const isFreed = (object: DataView, typeAt: number): boolean =>
  typeAt === 8 && (object.getUint32(0, true) === 0 || (object.getUint32(4, true) & 0xffff) !== 0);

function readType(memory: ProcessMemory, address: number, typeAt: number): ObjectType | undefined {
  const bytes = memory.read(address + typeAt + 16, FLAGS + 8);
  if (bytes?.length !== FLAGS + 8) return undefined;
  const type = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const flags = type.getUint32(FLAGS, true);
  if (flags & UNICODE_SUBCLASS) return 'str';
  if (flags & BYTES_SUBCLASS) return 'bytes';
  const name = memory.read(pointerAt(type, NAME), CODE_NAME.length);
  return name && String.fromCharCode(...name) === CODE_NAME ? 'code' : 'other';
}

export const pointerAt = (view: DataView, at: number): number =>
  view.getUint32(at + 4, true) * 2 ** 32 + view.getUint32(at, true);
