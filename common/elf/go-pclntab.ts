/**
 * Go's table of functions (.gopclntab): for each its range, its name and how much stack it uses at each of its
 * instructions. It is there whether or not the program is stripped, since the runtime itself unwinds with it. Layout:
 * runtime/symtab.go (pcHeader, functab, _func, step) of Go 1.16, 1.18, 1.20 and 1.26, the releases that changed it.
 */
import { Cursor } from '../base/cursor.ts';
import { ElfError, type ElfFile, PF_X, PT_LOAD, type Segment } from './elf.ts';
import { OutOfBounds } from './source.ts';

const SECTIONS = ['.gopclntab', '.data.rel.ro.gopclntab'];
const MAX_TABLE_BYTES = 256 << 20;
const MAX_FUNCTIONS = 4 << 20;
const MAX_RELOCATIONS_BYTES = 256 << 20;
/** Steps of one function's program. */
const MAX_STEPS = 1 << 16;
const POINTER_BYTES = 8;
const HEADER_BYTES = 72;
/** runtime.moduledata.text, from Go 1.16 on. */
const MODULE_TEXT_AT = 22 * POINTER_BYTES;
const RELA_BYTES = 24;
/** R_X86_64_RELATIVE, R_AARCH64_RELATIVE. */
const RELATIVE: Readonly<Record<ElfFile['machine'], number>> = { x86_64: 8, aarch64: 1027 };

interface Layout {
  /** Functions are offsets of 32 bits from the start of the text, not addresses. */
  isRelative: boolean;
  /** Of the offset of the stack program in a function's record. */
  frameAt: number;
}

const LAYOUTS: ReadonlyMap<number, Layout> = new Map([
  [0xfffffffa, { isRelative: false, frameAt: 20 }],
  [0xfffffff0, { isRelative: true, frameAt: 16 }],
  [0xfffffff1, { isRelative: true, frameAt: 16 }],
]);

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
  readonly functionCount: number;
  readonly #layout: Layout;
  readonly #textStart: number;
  readonly #quantum: number;
  /** The table of functions and their records. */
  readonly #functions: Cursor;
  readonly #programs: Cursor;

  /** Throws {@link ElfError} or OutOfBounds for what contradicts itself. */
  constructor(bytes: Uint8Array, findTextStart: () => number | undefined) {
    const cursor = new Cursor(bytes);
    const magic = cursor.u32();
    const layout = LAYOUTS.get(magic);
    if (!layout) throw new ElfError(`a Go function table of the unknown form 0x${magic.toString(16)}`);
    this.#layout = layout;
    cursor.skip(2);
    this.#quantum = cursor.u8();
    if (cursor.u8() !== POINTER_BYTES) throw new ElfError('a Go function table for 32-bit programs');
    this.functionCount = cursor.u64();
    cursor.skip(8);
    const textStart = layout.isRelative ? cursor.u64() || findTextStart() : 0;
    if (textStart === undefined)
      throw new ElfError('a Go function table that does not say where the text is');
    this.#textStart = textStart;
    const [names, units, , programs, functions] = Array.from({ length: 5 }, () => cursor.u64());
    if (!(names! < units! && units! <= programs! && programs! < functions! && functions! < bytes.length))
      throw new ElfError('a Go function table whose parts are out of order');
    const pair = layout.isRelative ? 8 : 16;
    if (this.functionCount > MAX_FUNCTIONS || (this.functionCount + 1) * pair > bytes.length - functions!)
      throw new ElfError(`a Go function table of ${this.functionCount} functions`);
    this.names = bytes.subarray(names, units);
    this.#programs = new Cursor(bytes.subarray(programs, functions));
    this.#functions = new Cursor(bytes.subarray(functions));
  }

  /** Ascending; ends early, without an error, where the table is broken. */
  *functions(): Iterable<GoFunction> {
    const cursor = this.#functions;
    const { isRelative, frameAt } = this.#layout;
    const word = isRelative ? 4 : 8;
    const read = (): number => (isRelative ? cursor.u32() : cursor.u64());
    for (let i = 0; i < this.functionCount; i++) {
      cursor.at = i * word * 2;
      const start = read() + this.#textStart;
      const record = read();
      const end = read() + this.#textStart;
      if (!(end > start) || !Number.isSafeInteger(end)) return;
      if (record + frameAt + 4 > cursor.bytes.length) return;
      cursor.at = record + word;
      const nameAt = cursor.u32();
      cursor.at = record + frameAt;
      yield { start, end, nameAt, frame: cursor.u32() };
    }
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
      address += cursor.uleb() * this.#quantum;
    }
    // behind the last instruction there may be padding
    if (address < f.end) add(address, -1);
    return true;
  }
}

export const isGo = (elf: ElfFile): boolean =>
  elf.goBuildId !== '' || SECTIONS.some((name) => elf.section(name) !== undefined);

/** Undefined where there is none, or none that can be read. */
export function findGoPclntab(elf: ElfFile): GoPclntab | undefined {
  if (!isGo(elf)) return undefined;
  try {
    const found = locate(elf);
    if (!found) return undefined;
    const { bytes, address } = found;
    return new GoPclntab(bytes, () => findTextStart(elf, address));
  } catch (error) {
    if (error instanceof ElfError || error instanceof OutOfBounds) return undefined;
    throw error;
  }
}

interface Located {
  bytes: Uint8Array;
  address: number;
}

function locate(elf: ElfFile): Located | undefined {
  const section = SECTIONS.map((name) => elf.section(name)).find((s) => s !== undefined);
  if (section) return { bytes: elf.sectionData(section, MAX_TABLE_BYTES), address: section.addr };
  for (const segment of elf.segments) {
    if (segment.type !== PT_LOAD || segment.flags & PF_X || segment.filesz > MAX_TABLE_BYTES) continue;
    const bytes = elf.source.read(segment.offset, segment.filesz);
    const at = findHeader(bytes, elf.machine === 'x86_64' ? 1 : 4);
    if (at !== undefined) return { bytes: bytes.subarray(at), address: segment.vaddr + at };
  }
  return undefined;
}

/** Without section headers: the magic number, two zero bytes, the quantum and the size of a pointer. */
function findHeader(bytes: Uint8Array, quantum: number): number | undefined {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  for (const magic of LAYOUTS.keys()) {
    const wanted = Buffer.from([0, 0, 0, 0, 0, 0, quantum, POINTER_BYTES]);
    wanted.writeUInt32LE(magic);
    for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + 1))
      if (at % POINTER_BYTES === 0 && text.length - at > HEADER_BYTES) return at;
  }
  return undefined;
}

/** From Go 1.26 on the table does not say it, runtime.moduledata does; that begins with the table's address. */
function findTextStart(elf: ElfFile, table: number): number | undefined {
  const section = elf.section('.go.module');
  const address = section ? section.addr : findModule(elf, table);
  if (address === undefined) return undefined;
  const at = address + MODULE_TEXT_AT;
  const offset = elf.addressToFileOffset(at);
  if (offset === undefined) return undefined;
  const stored = new Cursor(elf.source.read(offset, POINTER_BYTES)).u64();
  return stored || findRelocation(elf, at);
}

function findModule(elf: ElfFile, table: number): number | undefined {
  const wanted = Buffer.alloc(POINTER_BYTES);
  wanted.writeBigUInt64LE(BigInt(table));
  for (const segment of elf.segments) {
    if (segment.type !== PT_LOAD || segment.flags & PF_X || segment.filesz > MAX_TABLE_BYTES) continue;
    const bytes = elf.source.read(segment.offset, segment.filesz);
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + 1)) {
      if (at % POINTER_BYTES !== 0 || at + MODULE_TEXT_AT + POINTER_BYTES > text.length) continue;
      const start = Number(text.readBigUInt64LE(at + MODULE_TEXT_AT));
      if (isCode(elf.segments, start)) return segment.vaddr + at;
    }
  }
  return undefined;
}

const isCode = (segments: readonly Segment[], address: number): boolean =>
  segments.some(
    (s) => s.type === PT_LOAD && s.flags & PF_X && address >= s.vaddr && address < s.vaddr + s.filesz,
  );

/** GNU's linker leaves a zero where the dynamic linker puts an address. */
function findRelocation(elf: ElfFile, address: number): number | undefined {
  for (const name of ['.rela.dyn', '.rela']) {
    const section = elf.section(name);
    if (!section) continue;
    const bytes = elf.sectionData(section, MAX_RELOCATIONS_BYTES);
    const cursor = new Cursor(bytes);
    for (let at = 0; at + RELA_BYTES <= bytes.length; at += RELA_BYTES) {
      cursor.at = at;
      if (cursor.u64() !== address) continue;
      if (cursor.u32() === RELATIVE[elf.machine]) {
        cursor.skip(4);
        return cursor.u64();
      }
    }
  }
  return undefined;
}
