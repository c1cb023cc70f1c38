/**
 * Go's table of functions (.gopclntab): for each its range, its name and how much stack it uses at each of its
 * instructions. It is there whether or not the program is stripped, since the runtime itself unwinds with it. Layout:
 * runtime/symtab.go (pcHeader, functab, _func, step) of Go 1.16, 1.18, 1.20 and 1.26, the releases that changed it.
 */

import { OutOfBounds } from '../base/byte-source.ts';
import { Cursor } from '../base/cursor.ts';
import { ElfError, type ElfFile } from './elf.ts';
import { type GoHeader, readGoHeader } from './go-header.ts';
import { findGoText, GO_HEADER_BYTES, locateGoTable } from './go-module.ts';

const MAX_TABLE_BYTES = 256 << 20;
/** Steps of one function's program. */
const MAX_STEPS = 1 << 16;

export interface GoFunction {
  /** ELF virtual addresses. */
  start: number;
  end: number;
  /** Offset of its name in `names`. */
  nameAt: number;
  /** Offset of its stack program, 0: none. */
  frame: number;
}

export class GoPclntab {
  /** Names, each ended by a zero byte. */
  readonly names: Uint8Array;
  readonly #header: GoHeader;
  /** The table of functions and their records. */
  readonly #functions: Cursor;
  readonly #programs: Cursor;

  /** Throws {@link ElfError} or OutOfBounds for what contradicts itself. */
  constructor(bytes: Uint8Array, findTextStart: () => number | undefined) {
    this.#header = readGoHeader(bytes.subarray(0, GO_HEADER_BYTES), bytes.length, findTextStart);
    const { names, units, programs, functions } = this.#header;
    this.names = bytes.subarray(names, units);
    this.#programs = new Cursor(bytes.subarray(programs, functions));
    this.#functions = new Cursor(bytes.subarray(functions));
  }

  /** Ascending; ends early, without an error, where the table is broken. */
  *functions(): Iterable<GoFunction> {
    const cursor = this.#functions;
    const { wordBytes: word, functionCount, textStart } = this.#header;
    // of the offset of the stack program in a function's record
    const frameAt = word + 12;
    const read = (): number => (word === 4 ? cursor.u32() : cursor.u64());
    for (let i = 0; i < functionCount; i++) {
      cursor.at = i * word * 2;
      const start = read() + textStart;
      const record = read();
      const end = read() + textStart;
      if (!(end > start) || !Number.isSafeInteger(end)) return;
      if (record + frameAt + 4 > cursor.bytes.length) return;
      cursor.at = record + word;
      const nameAt = cursor.u32();
      cursor.at = record + frameAt;
      yield { start, end, nameAt, frame: cursor.u32() };
    }
  }

  /** Where in `names` those of the names that there are stand, so that functions are told by a number. */
  placesOf(names: Iterable<string>): Map<number, string> {
    const all = Buffer.from(this.names.buffer, this.names.byteOffset, this.names.length);
    const found = new Map<number, string>();
    for (const name of names) {
      const at = all.indexOf(`\0${name}\0`, 0, 'latin1');
      if (at >= 0) found.set(at + 1, name);
    }
    return found;
  }

  /**
   * Calls back with each address from which on the stack has so many bytes more than at the function's entry. False
   * where the program is broken or does not reach the function's end.
   */
  stackSizes(f: GoFunction, add: (address: number, bytes: number) => void): boolean {
    const cursor = this.#programs;
    if (f.frame === 0 || f.frame >= cursor.bytes.length) return false;
    cursor.at = f.frame;
    let address = f.start;
    let value = -1;
    for (let step = 0; step < MAX_STEPS; step++) {
      const change = cursor.uleb();
      // the program ends where nothing changes, as it may only at its start
      if (change === 0 && step > 0) break;
      value += change % 2 === 1 ? -(change + 1) / 2 : change / 2;
      if (address >= f.end) break;
      add(address, value);
      address += cursor.uleb() * this.#header.quantum;
    }
    // behind the last instruction there may be padding
    if (address < f.end) add(address, -1);
    return true;
  }
}

/** Undefined where there is none, or none that can be read. */
export function findGoPclntab(elf: ElfFile): GoPclntab | undefined {
  try {
    const place = locateGoTable(elf);
    if (!place) return undefined;
    const { section, offset, size, address } = place;
    const bytes = section ? elf.sectionData(section, MAX_TABLE_BYTES) : elf.source.read(offset, size);
    return new GoPclntab(bytes, () => findGoText(elf, address));
  } catch (error) {
    if (error instanceof ElfError || error instanceof OutOfBounds) return undefined;
    throw error;
  }
}
