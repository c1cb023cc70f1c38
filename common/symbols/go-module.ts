/**
 * Go's moduledata: where its code begins, and what inline trees are relative to. It begins with the address of
 * the pclntab; since Go 1.26 it has a section of its own, before it is looked for in the data.
 */
import { type ElfFile, PT_LOAD, type Section } from '../elf/elf.ts';
import { OutOfBounds } from '../elf/source.ts';

const DATA = ['.go.module', '.noptrdata', '.data', '.data.rel.ro'];
const MAX_DATA_BYTES = 64 << 20;
/** Offsets of `text` and `gofunc`, src/runtime/symtab.go: the same from 1.18 to 1.26. */
const TEXT = 176;
const GOFUNC = 320;
const MODULE_BYTES = 360;

export interface GoModule {
  /** First address of Go's code, 0 if unknown. */
  text: number;
  /** What inline trees are relative to; undefined if unknown. */
  functionData: { read(offset: number, length: number): Uint8Array } | undefined;
}

/** Before 1.18 functions say themselves where their inline trees are, and the table where the code is. */
export const oldGoModule = (elf: ElfFile): GoModule => ({
  text: 0,
  functionData: { read: (address, length) => readAt(elf, address, length) },
});

export function findGoModule(elf: ElfFile, tableAddress: number): GoModule {
  const own = elf.section('.go.func') ?? elf.section('.data.rel.ro.go.func');
  const found = DATA.map((name) => elf.section(name)).map(
    (section) => section && findIn(elf, section, tableAddress),
  );
  const module = found.find((bytes) => bytes !== undefined);
  const word = (offset: number): number => (module ? Number(module.getBigUint64(offset, true)) : 0);
  const base = own?.addr ?? word(GOFUNC);
  return {
    text: word(TEXT),
    functionData: base === 0 ? undefined : { read: (offset, length) => readAt(elf, base + offset, length) },
  };
}

function findIn(elf: ElfFile, section: Section, tableAddress: number): DataView | undefined {
  if (section.size < MODULE_BYTES || section.size > MAX_DATA_BYTES) return undefined;
  const bytes = elf.sectionData(section);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const [low, high] = [tableAddress >>> 0, Math.floor(tableAddress / 2 ** 32)];
  for (let at = 0; at + MODULE_BYTES <= bytes.length; at += 8) {
    if (view.getUint32(at, true) !== low || view.getUint32(at + 4, true) !== high) continue;
    return new DataView(bytes.buffer, bytes.byteOffset + at, MODULE_BYTES);
  }
  return undefined;
}

/** Bytes of the file at an ELF virtual address. */
function readAt(elf: ElfFile, address: number, length: number): Uint8Array {
  for (const { type, vaddr, filesz, offset } of elf.segments) {
    if (type === PT_LOAD && address >= vaddr && address + length <= vaddr + filesz) {
      return elf.source.read(offset + (address - vaddr), length);
    }
  }
  throw new OutOfBounds(`${length} bytes at address ${address}`);
}
