/**
 * Which code of a file Go's compiler and assembler made. It is in one piece (runtime.text to runtime.etext); before it
 * Go's own linker puts the C of cgo, which is in the table of functions as well, but has no source files there. What
 * another linker adds is outside the table.
 */
import { OutOfBounds } from '../base/byte-source.ts';
import { Cursor } from '../base/cursor.ts';
import { ElfError, type ElfFile } from './elf.ts';
import { type GoHeader, readGoHeader } from './go-header.ts';
import { findGoText, GO_HEADER_BYTES, type GoTablePlace, locateGoTable } from './go-module.ts';

const MAX_TABLE_BYTES = 256 << 20;
const SHF_COMPRESSED = 0x800;
/** Place in a function's record, behind its address, of what shows the source file of each instruction; 0: nothing does. */
const FILE_PROGRAM_AT = 16;
/** Functions of C are some hundred at most: all that runtime/cgo, net and a program's own few files have. */
const MAX_C_FUNCTIONS = 1 << 16;

/** ELF virtual addresses. */
export interface CodeRange {
  start: number;
  end: number;
}

/** Undefined where the file has none, or its table can't be read. */
export function findGoCode(elf: ElfFile): CodeRange | undefined {
  try {
    const place = locateGoTable(elf);
    return place && readRange(elf, place);
  } catch (error) {
    if (error instanceof ElfError || error instanceof OutOfBounds) return undefined;
    throw error;
  }
}

function readRange(elf: ElfFile, place: GoTablePlace): CodeRange | undefined {
  const read = readerOf(elf, place);
  const start = read(0, Math.min(GO_HEADER_BYTES, place.size));
  const header = readGoHeader(start, place.size, () => findGoText(elf, place.address));
  const { functions, functionCount, wordBytes, textStart } = header;
  const word = (at: number): number => uint(read(functions + at, wordBytes), wordBytes);
  const first = firstOfGo(header, word, read);
  if (first === undefined) return undefined;
  const range = {
    start: textStart + word(2 * first * wordBytes),
    end: textStart + word(2 * functionCount * wordBytes),
  };
  return Number.isSafeInteger(range.end) && range.start < range.end ? range : undefined;
}

/** Index of the first function with a source file. */
function firstOfGo(
  { functions, functionCount, wordBytes }: GoHeader,
  word: (at: number) => number,
  read: Reader,
): number | undefined {
  for (let i = 0; i < Math.min(functionCount, MAX_C_FUNCTIONS); i++) {
    const record = functions + word((2 * i + 1) * wordBytes);
    if (uint(read(record + wordBytes + FILE_PROGRAM_AT, 4), 4) !== 0) return i;
  }
  return undefined;
}

/** Bytes of the table; throws OutOfBounds. */
type Reader = (at: number, length: number) => Uint8Array;

function readerOf(elf: ElfFile, { section, offset, size }: GoTablePlace): Reader {
  if (!section || !(section.flags & SHF_COMPRESSED))
    return (at, length) => {
      if (at + length > size) throw new OutOfBounds(`${length} bytes at ${at} of ${size}`);
      return elf.source.read(offset + at, length);
    };
  const bytes = elf.sectionData(section, MAX_TABLE_BYTES);
  return (at, length) => {
    if (at + length > bytes.length) throw new OutOfBounds(`${length} bytes at ${at} of ${bytes.length}`);
    return bytes.subarray(at, at + length);
  };
}

function uint(bytes: Uint8Array, size: 4 | 8): number {
  const cursor = new Cursor(bytes);
  return size === 4 ? cursor.u32() : cursor.u64();
}
