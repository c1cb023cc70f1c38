/**
 * Where code finds a thread-local variable that a file exports: as relocations of the file name it, in a slot that the loader
 * has filled; of a program that needs none, by the rules of the psABI ("Thread-Local Storage", variants I and II).
 */
import { type ElfFile, SHT_DYNSYM } from '../elf/elf.ts';
import { findNamedSymbols } from './named-symbols.ts';
import { forEachEntry, readStrings, readU64 } from './section-entries.ts';

export type ThreadLocal = {
  /** Bytes; 0 where the file does not say. */
  size: number;
} & (
  | {
      /** Two words: who finds it, and what that one is given: bytes from the thread pointer, or where module and offset stand (TLSDESC). */
      kind: 'descriptor';
      /** ELF virtual address. */
      slot: number;
    }
  /** The number that the loader gave the module; `offset`: of the variable in it, undefined where the next word has that. */
  | { kind: 'module'; slot: number; offset: number | undefined }
  /** A word: bytes from the thread pointer. */
  | { kind: 'offset'; slot: number }
  /** Bytes from the thread pointer. */
  | { kind: 'static'; offset: number }
);

const [SHT_RELA, RELA_BYTES, SYMBOL_BYTES] = [4, 24, 24];
const [PT_INTERP, PT_TLS, ET_EXEC] = [3, 7, 2];
const MAX_RELOCATIONS = 1 << 20;
/** By machine: the kinds of relocations, as the psABIs number them. */
const RELOCATIONS = {
  x86_64: { module: 16, offset: 18, descriptor: 36 },
  aarch64: { module: 1028, offset: 1030, descriptor: 1031 },
};
/** What is before the variables of a program on arm64: the thread's vector of modules, and a word. */
const TCB_BYTES = 16;

/** Of the first name that the file exports; undefined where that is none, or nothing leads to it. Throws ElfError, OutOfBounds. */
export function findThreadLocal(elf: ElfFile, name: string): ThreadLocal | undefined {
  const symbol = findNamedSymbols(elf, name, [name]).get(name);
  const tls = elf.segments.find(({ type }) => type === PT_TLS);
  if (!symbol || !tls || symbol.address >= tls.memsz) return undefined;
  const { size, address } = symbol;
  const found = findRelocation(elf, name, address);
  if (found) return { size, ...found };
  const isProgram = elf.type === ET_EXEC || elf.segments.some(({ type }) => type === PT_INTERP);
  return isProgram ? { size, kind: 'static', offset: staticOffset(elf, tls, address) } : undefined;
}

type Relocated =
  | { kind: 'descriptor' | 'offset'; slot: number }
  | { kind: 'module'; slot: number; offset: number | undefined };

/** By the symbol's number, or without one by the offset in the module, as where the symbol can't be another file's. */
function findRelocation(elf: ElfFile, name: string, address: number): Relocated | undefined {
  const kinds = RELOCATIONS[elf.machine];
  const number = numberOf(elf, name);
  let own: Relocated | undefined;
  let unnamed: Relocated | undefined;
  for (const section of elf.sections) {
    if (section.type !== SHT_RELA) continue;
    forEachEntry(elf, section, { entryBytes: RELA_BYTES, limit: MAX_RELOCATIONS }, (view, at) => {
      const [type, symbol] = [view.getUint32(at + 8, true), view.getUint32(at + 12, true)];
      const slot = readU64(view, at);
      if (symbol === number) {
        if (type === kinds.descriptor) own ??= { kind: 'descriptor', slot };
        else if (type === kinds.module) own ??= { kind: 'module', slot, offset: undefined };
        else if (type === kinds.offset) own ??= { kind: 'offset', slot };
      } else if (symbol === 0) {
        const isOwn = readU64(view, at + 16) === address;
        if (type === kinds.descriptor && isOwn) unnamed ??= { kind: 'descriptor', slot };
        else if (type === kinds.offset && isOwn) unnamed ??= { kind: 'offset', slot };
        else if (type === kinds.module) unnamed ??= { kind: 'module', slot, offset: address };
      }
    });
  }
  return own ?? unnamed;
}

/** Of a dynamic symbol; -1: there is none. */
function numberOf(elf: ElfFile, name: string): number {
  const section = elf.sections.find(({ type }) => type === SHT_DYNSYM);
  if (!section) return -1;
  const strings = readStrings(elf, section);
  const bytes = Buffer.from(strings.buffer, strings.byteOffset, strings.length);
  const wanted = Buffer.from(`${name}\0`, 'latin1');
  let number = -1;
  let next = 0;
  forEachEntry(elf, section, { entryBytes: SYMBOL_BYTES, limit: MAX_RELOCATIONS }, (view, at) => {
    const nameAt = view.getUint32(at, true);
    if (number < 0 && bytes.subarray(nameAt, nameAt + wanted.length).equals(wanted)) number = next;
    next++;
  });
  return number;
}

const alignUp = (value: number, align: number): number => Math.ceil(value / align) * align;

function staticOffset(
  { machine }: ElfFile,
  { memsz, align }: { memsz: number; align: number },
  address: number,
): number {
  const alignment = Math.max(align, 1);
  return machine === 'x86_64' ? address - alignUp(memsz, alignment) : alignUp(TCB_BYTES, alignment) + address;
}
