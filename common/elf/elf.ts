/**
 * ELF files, 64-bit little endian, of amd64 and arm64: headers, sections and segments, build IDs. Sizes and
 * counts come from foreign files: each has a cap. Format: the System V ABI, chapters 4 and 5.
 */
import { inflateSync } from 'node:zlib';
import { decompress as decompressZstd } from 'fzstd';
import { type ByteSource, OutOfBounds } from '../base/byte-source.ts';
import { Cursor } from '../base/cursor.ts';
import { readDynamicSections } from './dynamic-sections.ts';
import type { Section, Segment } from './headers.ts';
import { readNotes } from './notes.ts';

export type { Section, Segment } from './headers.ts';

export class ElfError extends Error {
  override readonly name = 'ElfError';
}

export type Machine = 'x86_64' | 'aarch64';

export const PT_LOAD = 1;
export const PT_NOTE = 4;
export const PT_GNU_EH_FRAME = 0x6474e550;
export const PF_X = 1;
export const PF_W = 2;
const SHT_NULL = 0;
export const SHT_SYMTAB = 2;
export const SHT_STRTAB = 3;
export const SHT_NOBITS = 8;
export const SHT_DYNSYM = 11;
export const SHF_EXECINSTR = 4;
const SHF_COMPRESSED = 0x800;
const SHT_NOTE = 7;
const ELFCOMPRESS_ZLIB = 1;
const ELFCOMPRESS_ZSTD = 2;

const HEADER_BYTES = 64;
const MAX_SEGMENTS = 1024;
const MAX_SECTIONS = 65_536;
const MAX_SECTION_NAMES_BYTES = 16 << 20;
const MAX_NAME_BYTES = 4096;
/** Of note sections and segments, each. */
const MAX_NOTE_BYTES = 1 << 20;
const MAX_NOTE_AREAS = 64;
/** Of one section's content, after decompression. */
const MAX_SECTION_BYTES = 1 << 30;
/** Deflate's own: 258 bytes of two bits. */
const MAX_DEFLATE_RATIO = 1032;
/** So that zlib sees its end in the one piece that it fills, and no second one is made. */
const SPARE_BYTES = 64;
const MACHINES: Readonly<Record<number, Machine>> = { 62: 'x86_64', 183: 'aarch64' };

export class ElfFile {
  readonly source: ByteSource;
  readonly machine: Machine;
  /** ET_EXEC 2, ET_DYN 3, ET_REL 1, … */
  readonly type: number;
  readonly entry: number;
  readonly segments: readonly Segment[];
  /** The least size that the headers tell of: more than the source has where the file was cut. */
  readonly declaredBytes: number;
  /** Where the section headers were stripped or are broken: those of the dynamic symbols alone, if any. */
  readonly sections: readonly Section[];
  readonly #byName = new Map<string, Section>();
  #notes: { gnuBuildId: string; goBuildId: string } | undefined;

  constructor(
    source: ByteSource,
    header: { machine: Machine; type: number; entry: number; declaredBytes: number },
    segments: Segment[],
    sections: Section[],
  ) {
    this.source = source;
    this.machine = header.machine;
    this.type = header.type;
    this.entry = header.entry;
    this.declaredBytes = header.declaredBytes;
    this.segments = segments;
    this.sections = sections;
    for (const section of sections) {
      if (!this.#byName.has(section.name)) this.#byName.set(section.name, section);
    }
  }

  /** The first section of that name. */
  section(name: string): Section | undefined {
    return this.#byName.get(name);
  }

  /**
   * A section's content, decompressed: throws ElfError where that is not possible or has more than `maxBytes`,
   * OutOfBounds where it lies outside the file.
   */
  sectionData(section: Section, maxBytes = MAX_SECTION_BYTES): Uint8Array {
    if (section.type === SHT_NOBITS) return new Uint8Array(0);
    if (section.size > maxBytes) throw new ElfError(`section ${section.name} has ${section.size} bytes`);
    const bytes = this.source.read(section.offset, section.size);
    if (section.flags & SHF_COMPRESSED) return decompress(section.name, bytes, maxBytes);
    return section.name.startsWith('.zdebug') ? decompressGnu(section.name, bytes, maxBytes) : bytes;
  }

  /** Hex; '' if the file has none. */
  get gnuBuildId(): string {
    this.#notes ??= this.#readNotes();
    return this.#notes.gnuBuildId;
  }

  get goBuildId(): string {
    this.#notes ??= this.#readNotes();
    return this.#notes.goBuildId;
  }

  fileOffsetToAddress(offset: number): number | undefined {
    const segment = this.segments.find(
      (s) => s.type === PT_LOAD && offset >= s.offset && offset < s.offset + s.filesz,
    );
    return segment && segment.vaddr + (offset - segment.offset);
  }

  addressToFileOffset(address: number): number | undefined {
    const segment = this.segments.find(
      (s) => s.type === PT_LOAD && address >= s.vaddr && address < s.vaddr + s.filesz,
    );
    return segment && segment.offset + (address - segment.vaddr);
  }

  #readNotes(): { gnuBuildId: string; goBuildId: string } {
    const found = { gnuBuildId: '', goBuildId: '' };
    const areas = [
      ...this.sections.filter((s) => s.type === SHT_NOTE),
      ...this.segments.filter((s) => s.type === PT_NOTE).map((s) => ({ offset: s.offset, size: s.filesz })),
    ];
    for (const { offset, size } of areas.slice(0, MAX_NOTE_AREAS)) {
      try {
        findBuildIds(this.source.read(offset, Math.min(size, MAX_NOTE_BYTES)), found);
      } catch (error) {
        if (!(error instanceof OutOfBounds)) throw error;
      }
    }
    return found;
  }
}

const NT_GNU_BUILD_ID = 3;
const NT_GO_BUILD_ID = 4;

function findBuildIds(bytes: Uint8Array, found: { gnuBuildId: string; goBuildId: string }): void {
  for (const { name, type, descriptor } of readNotes(bytes)) {
    if (name === 'GNU' && type === NT_GNU_BUILD_ID)
      found.gnuBuildId ||= Buffer.from(descriptor).toString('hex');
    if (name === 'Go' && type === NT_GO_BUILD_ID)
      found.goBuildId ||= Buffer.from(descriptor).toString('latin1');
  }
}

function decompress(name: string, bytes: Uint8Array, maxBytes: number): Uint8Array {
  const cursor = new Cursor(bytes);
  const type = cursor.u32();
  cursor.skip(4);
  const size = cursor.u64();
  cursor.skip(8);
  if (type !== ELFCOMPRESS_ZSTD && type !== ELFCOMPRESS_ZLIB)
    throw new ElfError(`section ${name} is compressed by method ${type}, not zlib or zstd`);
  return expand(name, bytes.subarray(cursor.at), { size, maxBytes, isZstd: type === ELFCOMPRESS_ZSTD });
}

/** What binutils wrote before SHF_COMPRESSED, in sections called .zdebug_…: "ZLIB" and a big-endian size. */
function decompressGnu(name: string, bytes: Uint8Array, maxBytes: number): Uint8Array {
  const head = Buffer.from(bytes.subarray(0, 12));
  if (head.length < 12 || head.toString('latin1', 0, 4) !== 'ZLIB')
    throw new ElfError(`section ${name} does not start with ZLIB and its size`);
  const size = Number(head.readBigUInt64BE(4));
  return expand(name, bytes.subarray(12), { size, maxBytes, isZstd: false });
}

function expand(
  name: string,
  bytes: Uint8Array,
  { size, maxBytes, isZstd }: { size: number; maxBytes: number; isZstd: boolean },
): Uint8Array {
  if (size > maxBytes) throw new ElfError(`section ${name} has ${size} bytes when decompressed`);
  if (!isZstd && size > bytes.length * MAX_DEFLATE_RATIO)
    throw new ElfError(`section ${name} cannot have ${size} bytes when decompressed: it has ${bytes.length}`);
  let content: Uint8Array;
  try {
    content = isZstd
      ? decompressZstd(bytes, new Uint8Array(size))
      : inflateSync(bytes, { maxOutputLength: Math.max(size, 1), chunkSize: size + SPARE_BYTES });
  } catch (error) {
    throw new ElfError(`section ${name} cannot be decompressed: ${(error as Error).message}`);
  }
  if (content.length !== size)
    throw new ElfError(`section ${name} has ${content.length} bytes when decompressed, not ${size}`);
  return content;
}

/** Throws {@link ElfError} for what is not an ELF file that can be handled; broken section headers count as none. */
export function parseElf(source: ByteSource): ElfFile {
  if (source.size < HEADER_BYTES) throw new ElfError(`no ELF file: it has only ${source.size} bytes`);
  const cursor = new Cursor(source.read(0, HEADER_BYTES));
  if (cursor.u32() !== 0x464c457f) throw new ElfError('no ELF file: it does not start with \\x7fELF');
  const elfClass = cursor.u8();
  const data = cursor.u8();
  if (elfClass !== 2) throw new ElfError('a 32-bit ELF file: only 64-bit ones are supported');
  if (data !== 1) throw new ElfError('a big-endian ELF file: only little-endian ones are supported');
  cursor.at = 16;
  const type = cursor.u16();
  const machineNumber = cursor.u16();
  const machine = MACHINES[machineNumber];
  if (!machine)
    throw new ElfError(
      `an ELF file for machine ${machineNumber}: only amd64 (62) and arm64 (183) are supported`,
    );
  cursor.skip(4);
  const entry = cursor.u64();
  const segmentsAt = cursor.u64();
  const sectionsAt = cursor.u64();
  cursor.skip(6);
  const segmentSize = cursor.u16();
  const segmentCount = cursor.u16();
  const sectionSize = cursor.u16();
  const sectionCount = cursor.u16();
  const namesIndex = cursor.u16();
  const segments = readSegments(source, segmentsAt, segmentSize, segmentCount);
  const table = { at: sectionsAt, size: sectionSize, count: sectionCount, namesIndex };
  const sections = readSections(source, table);
  const declaredBytes = declaredEnd(table, segments, sections);
  // their place can be a hole, too
  const hasSections = sections.some((section) => section.type !== SHT_NULL);
  const known = hasSections ? sections : readDynamicSections(source, segments);
  return new ElfFile(source, { machine, type, entry, declaredBytes }, segments, known);
}

/** Segments are asked only without sections: a file of debug information alone has those of its program. */
function declaredEnd(
  table: SectionTable,
  segments: readonly Segment[],
  sections: readonly Section[],
): number {
  if (table.at === 0) return Math.max(0, ...segments.map(({ offset, filesz }) => offset + filesz));
  const held = sections.filter(({ type }) => type !== SHT_NOBITS && type !== SHT_NULL);
  return held.reduce(
    (end, { offset, size }) => Math.max(end, offset + size),
    table.at + table.size * table.count,
  );
}

/** Addresses and offsets are numbers: what is larger than 2^53 is not a program that runs in user space. */
const isExact = Number.isSafeInteger;

function readSegments(source: ByteSource, at: number, size: number, count: number): Segment[] {
  if (count === 0) return [];
  if (size !== 56 || count > MAX_SEGMENTS) throw new ElfError(`${count} program headers of ${size} bytes`);
  try {
    const cursor = new Cursor(source.read(at, size * count));
    return Array.from({ length: count }, () => {
      const [type, flags, offset, vaddr] = [cursor.u32(), cursor.u32(), cursor.u64(), cursor.u64()];
      cursor.skip(8);
      const [filesz, memsz, align] = [cursor.u64(), cursor.u64(), cursor.u64()];
      if (
        type === PT_LOAD &&
        !(isExact(offset + filesz) && isExact(vaddr + memsz) && isExact(vaddr + filesz))
      )
        throw new ElfError(`a segment of ${filesz} bytes at ${offset} for address 0x${vaddr.toString(16)}`);
      return { type, flags, offset, vaddr, filesz, memsz, align };
    });
  } catch (error) {
    if (error instanceof OutOfBounds)
      throw new ElfError(`the program headers lie outside the file: ${error.message}`);
    throw error;
  }
}

interface SectionTable {
  at: number;
  size: number;
  count: number;
  namesIndex: number;
}

function readSections(source: ByteSource, table: SectionTable): Section[] {
  try {
    if (table.at === 0 || table.size !== 64) return [];
    let { count, namesIndex } = table;
    // more than fit into the header's 16 bits: the real numbers stand in section 0
    if (count === 0 || namesIndex === 0xffff) {
      const first = new Cursor(source.read(table.at, 64));
      first.at = 32;
      if (count === 0) count = first.u64();
      else first.skip(8);
      if (namesIndex === 0xffff) namesIndex = first.u32();
    }
    if (count > MAX_SECTIONS) return [];
    const raw = readSectionHeaders(source.read(table.at, 64 * count), count);
    const names = raw[namesIndex];
    const nameBytes =
      names && names.size <= MAX_SECTION_NAMES_BYTES
        ? source.read(names.offset, names.size)
        : new Uint8Array(0);
    for (const section of raw) section.name = nameAt(nameBytes, section.nameAt);
    return raw;
  } catch (error) {
    if (error instanceof OutOfBounds) return [];
    throw error;
  }
}

function readSectionHeaders(bytes: Uint8Array, count: number): (Section & { nameAt: number })[] {
  const cursor = new Cursor(bytes);
  return Array.from({ length: count }, () => {
    const [nameOffset, type] = [cursor.u32(), cursor.u32()];
    const [flags, addr, offset, size] = [cursor.u64(), cursor.u64(), cursor.u64(), cursor.u64()];
    const link = cursor.u32();
    cursor.skip(12);
    return { name: '', nameAt: nameOffset, type, flags, addr, offset, size, link, entsize: cursor.u64() };
  });
}

function nameAt(names: Uint8Array, at: number): string {
  const name = names.subarray(at, at + MAX_NAME_BYTES);
  const end = name.indexOf(0);
  return Buffer.from(name.subarray(0, end < 0 ? name.length : end)).toString('latin1');
}
