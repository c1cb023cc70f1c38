/**
 * Where Go's tables are in an ELF file, with or without section headers: the table of functions (.gopclntab), and
 * runtime.moduledata, which begins with that table's address and says where the code and other tables are
 * (src/runtime/symtab.go).
 */
import { Cursor } from '../base/cursor.ts';
import { codeSegmentAt } from './bytes-at.ts';
import { type ElfFile, PF_W, PF_X, PT_LOAD, type Section, type Segment } from './elf.ts';

const SECTIONS = ['.gopclntab', '.data.rel.ro.gopclntab'];
const FUNCTION_DATA_SECTIONS = ['.go.func', '.data.rel.ro.go.func'];
const MAX_TABLE_BYTES = 256 << 20;
const MAX_RELOCATIONS_BYTES = 256 << 20;
const CHUNK_BYTES = 1 << 20;
const POINTER_BYTES = 8;
/** runtime.moduledata.text from Go 1.16 on, and .gofunc from 1.18 on. */
const TEXT_AT = 176;
const FUNCTION_DATA_AT = 320;
const MODULE_BYTES = 360;
const RELA_BYTES = 24;
/** R_X86_64_RELATIVE, R_AARCH64_RELATIVE. */
const RELATIVE: Readonly<Record<ElfFile['machine'], number>> = { x86_64: 8, aarch64: 1027 };

/** Of the table of functions: what it begins with, by the release that brought the form. */
export const GO_MAGICS: ReadonlyMap<number, 16 | 18 | 20> = new Map([
  [0xfffffffa, 16],
  [0xfffffff0, 18],
  [0xfffffff1, 20],
]);
export const GO_HEADER_BYTES = 72;

export interface GoTablePlace {
  /** Undefined where it was found without section headers. */
  section: Section | undefined;
  /** In the file, if it is not compressed. Without a section it ends before `size`. */
  offset: number;
  size: number;
  /** ELF virtual address. */
  address: number;
}

export const isGo = (elf: ElfFile): boolean => elf.goBuildId !== '' || sectionOf(elf, SECTIONS) !== undefined;

const sectionOf = (elf: ElfFile, names: readonly string[]): Section | undefined =>
  names.map((name) => elf.section(name)).find((section) => section !== undefined);

/** Undefined where there is none. Throws OutOfBounds where the file was cut. */
export function locateGoTable(elf: ElfFile): GoTablePlace | undefined {
  if (!isGo(elf)) return undefined;
  const section = sectionOf(elf, SECTIONS);
  if (section) return { section, offset: section.offset, size: section.size, address: section.addr };
  for (const segment of dataSegments(elf)) {
    const at = findHeader(elf, segment);
    if (at === undefined) continue;
    const { offset, vaddr, filesz } = segment;
    return { section: undefined, offset: offset + at, size: filesz - at, address: vaddr + at };
  }
  return undefined;
}

/** What may hold tables; what is writable last. */
const dataSegments = (elf: ElfFile): Segment[] =>
  elf.segments
    .filter((s) => s.type === PT_LOAD && !(s.flags & PF_X) && s.filesz <= MAX_TABLE_BYTES)
    .sort((a, b) => (a.flags & PF_W) - (b.flags & PF_W));

/** The magic number, two zero bytes, the quantum and the size of a pointer. */
function findHeader(elf: ElfFile, segment: Segment): number | undefined {
  for (const magic of GO_MAGICS.keys()) {
    const wanted = Buffer.from([0, 0, 0, 0, 0, 0, elf.machine === 'x86_64' ? 1 : 4, POINTER_BYTES]);
    wanted.writeUInt32LE(magic);
    for (const at of findAligned(elf, segment, wanted)) if (segment.filesz - at > GO_HEADER_BYTES) return at;
  }
  return undefined;
}

/** Offset in the file at which the bytes stand first in its data, at a multiple of `alignment`, which divides {@link CHUNK_BYTES}. */
export function findInData(elf: ElfFile, wanted: Buffer, alignment: number): number | undefined {
  for (const segment of dataSegments(elf).reverse())
    for (const at of findAligned(elf, segment, wanted, alignment)) return segment.offset + at;
  return undefined;
}

/** Places in a segment, in pieces: it may have hundreds of megabytes. `wanted` is no longer than the alignment. */
function* findAligned(
  elf: ElfFile,
  segment: Segment,
  wanted: Buffer,
  alignment = POINTER_BYTES,
): Iterable<number> {
  for (let done = 0; done < segment.filesz; done += CHUNK_BYTES) {
    const size = Math.min(CHUNK_BYTES, segment.filesz - done);
    const bytes = elf.source.read(segment.offset + done, size);
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + 1))
      if (at % alignment === 0) yield done + at;
  }
}

/** Where the code begins, for a table that does not say it (from Go 1.26 on). */
export function findGoText(elf: ElfFile, table: number): number | undefined {
  const module = elf.section('.go.module')?.addr ?? findModule(elf, table);
  return module === undefined ? undefined : pointerAt(elf, module + TEXT_AT);
}

/** What inline trees are relative to, from Go 1.18 on. */
export function findGoFunctionData(elf: ElfFile, table: number): number | undefined {
  const section = sectionOf(elf, FUNCTION_DATA_SECTIONS);
  if (section) return section.addr;
  const module = elf.section('.go.module')?.addr ?? findModule(elf, table);
  return module === undefined ? undefined : pointerAt(elf, module + FUNCTION_DATA_AT);
}

function findModule(elf: ElfFile, table: number): number | undefined {
  const wanted = Buffer.alloc(POINTER_BYTES);
  wanted.writeBigUInt64LE(BigInt(table));
  for (const segment of dataSegments(elf).reverse()) {
    for (const at of findAligned(elf, segment, wanted)) {
      if (at + MODULE_BYTES > segment.filesz) continue;
      const text = new Cursor(elf.source.read(segment.offset + at + TEXT_AT, POINTER_BYTES)).u64();
      if (codeSegmentAt(elf, text)) return segment.vaddr + at;
    }
  }
  return undefined;
}

/** A word of the file's data, as the program has it when it runs. */
export function pointerAt(elf: ElfFile, address: number): number | undefined {
  const offset = elf.addressToFileOffset(address);
  if (offset === undefined) return undefined;
  return new Cursor(elf.source.read(offset, POINTER_BYTES)).u64() || findRelocation(elf, address);
}

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
