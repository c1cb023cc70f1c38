import { Cursor } from '../base/cursor.ts';
import { ElfError } from './elf.ts';
import { GO_MAGICS } from './go-module.ts';

const MAX_FUNCTIONS = 4 << 20;
const POINTER_BYTES = 8;

/** Of Go's table of functions: runtime/symtab.go, pcHeader. Places are counted from the start of the table. */
export interface GoHeader {
  /** Of Go 1: the one that brought this form. */
  release: 16 | 18 | 20;
  /** What addresses of instructions are multiples of. */
  quantum: number;
  functionCount: number;
  /** Addresses of functions count from there. */
  textStart: number;
  /** Bytes of an address of a function, and of its place in the table. */
  wordBytes: 4 | 8;
  names: number;
  units: number;
  files: number;
  programs: number;
  /** Address and place of each function, in turn, and the address where the last one ends. */
  functions: number;
}

/**
 * `bytes` are the first of a table of `size` bytes. Throws {@link ElfError} or OutOfBounds for what contradicts itself
 * or is of a release that we don't know.
 */
export function readGoHeader(
  bytes: Uint8Array,
  size: number,
  findTextStart: () => number | undefined,
): GoHeader {
  const cursor = new Cursor(bytes);
  const magic = cursor.u32();
  const release = GO_MAGICS.get(magic);
  if (!release) throw new ElfError(`a Go function table of the unknown form 0x${magic.toString(16)}`);
  cursor.skip(2);
  const quantum = cursor.u8();
  if (cursor.u8() !== POINTER_BYTES) throw new ElfError('a Go function table for 32-bit programs');
  const functionCount = cursor.u64();
  cursor.skip(8);
  // before 1.18 functions have addresses; since 1.26 the header has a zero
  const textStart = release === 16 ? 0 : cursor.u64() || findTextStart();
  if (textStart === undefined) throw new ElfError('a Go function table that does not say where the text is');
  const [names, units, files, programs, functions] = [0, 1, 2, 3, 4].map(() => cursor.u64()) as [
    ...[number, number, number, number, number],
  ];
  const isOrdered = names < units && units <= files && files <= programs && programs < functions;
  if (!isOrdered || functions >= size) throw new ElfError('a Go function table whose parts are out of order');
  const wordBytes = release === 16 ? 8 : 4;
  if (functionCount > MAX_FUNCTIONS || (2 * functionCount + 1) * wordBytes > size - functions)
    throw new ElfError(`a Go function table of ${functionCount} functions`);
  const parts = { names, units, files, programs, functions };
  return { release, quantum, functionCount, textStart, wordBytes, ...parts };
}
