/**
 * Names for the stubs through which a file calls what other files export: `read@plt`. They have no symbols of
 * their own. Each stub jumps through a slot, and the relocation of that slot names the function; so the stub's
 * instructions are read for its slot, which works for every linker's layout (.plt, .plt.sec, .plt.got).
 */
import { type ElfFile, type Section, SHT_DYNSYM } from '../elf/elf.ts';
import { BIND_LOCAL } from './name-column.ts';
import { findStrings, forEachEntry, readU64 } from './section-entries.ts';
import type { SymbolCandidates } from './symbol-candidates.ts';

const SHT_RELA = 4;
const RELA_BYTES = 24;
const SYMBOL_BYTES = 24;
const STUBS = /^\.plt(\.sec|\.got)?$/;
/** GLOB_DAT and JUMP_SLOT of amd64, then of arm64: the psABIs, "Relocation Types". */
const SLOT_TYPES = new Set([6, 7, 1025, 1026]);
const MAX_RELOCATIONS = 1 << 20;
const MAX_PLT_BYTES = 64 << 20;

export function addPltSymbols(elf: ElfFile, candidates: SymbolCandidates): void {
  const stubs = elf.sections.filter(({ name, size }) => STUBS.test(name) && size <= MAX_PLT_BYTES);
  const symbols = elf.sections.find(({ type }) => type === SHT_DYNSYM);
  if (stubs.length === 0 || !symbols) return;
  const entries = elf.sectionData(symbols);
  const view = new DataView(entries.buffer, entries.byteOffset, entries.byteLength);
  const names = findStrings(elf, symbols);
  const source = candidates.addSource({ offset: names.offset, size: names.size, suffix: '@plt' });
  for (const { address, size, symbol } of findStubs(elf, stubs)) {
    const at = symbol * SYMBOL_BYTES;
    if (at + SYMBOL_BYTES <= view.byteLength)
      candidates.add(address, size, BIND_LOCAL, source, view.getUint32(at, true));
  }
}

interface Stub {
  address: number;
  size: number;
  /** Index in .dynsym. */
  symbol: number;
}

function findStubs(elf: ElfFile, sections: Section[]): Stub[] {
  const slots = readSlots(elf);
  const findSlot = elf.machine === 'x86_64' ? findSlotX86 : findSlotArm;
  const found: Stub[] = [];
  for (const section of sections) {
    const code = elf.sectionData(section);
    const size = stubBytes(section);
    for (let at = 0; at + size <= code.length; at += size) {
      const slot = findSlot(code, at, size, section.addr);
      const symbol = slot === undefined ? undefined : slots.get(slot);
      if (symbol !== undefined) found.push({ address: section.addr + at, size, symbol });
    }
  }
  return found;
}

/** .plt.got may have stubs of 8 bytes; all others have 16. The linkers note it in the section header. */
const stubBytes = (section: Section): number => (section.entsize === 8 ? 8 : 16);

/** Slot address → index in .dynsym, from all relocations of the PLT and of the GOT. */
function readSlots(elf: ElfFile): Map<number, number> {
  const slots = new Map<number, number>();
  for (const section of elf.sections) {
    if (section.type !== SHT_RELA || !/^\.rela\.(plt|dyn)$/.test(section.name)) continue;
    forEachEntry(elf, section, { entryBytes: RELA_BYTES, limit: MAX_RELOCATIONS }, (view, at) => {
      const type = view.getUint32(at + 8, true);
      const symbol = view.getUint32(at + 12, true);
      if (symbol !== 0 && SLOT_TYPES.has(type)) slots.set(readU64(view, at), symbol);
    });
  }
  return slots;
}

/** `jmp *disp32(%rip)` is ff 25 and the distance from the next instruction; endbr64 or bnd may precede it. */
function findSlotX86(code: Uint8Array, at: number, step: number, address: number): number | undefined {
  const view = new DataView(code.buffer, code.byteOffset, code.byteLength);
  for (let i = at; i + 6 <= at + step; i++) {
    if (code[i] === 0xff && code[i + 1] === 0x25) return address + i + 6 + view.getInt32(i + 2, true);
  }
  return undefined;
}

/** `adrp x16, page` and `ldr x17, [x16, #offset]`, after an optional `bti c`. */
function findSlotArm(code: Uint8Array, at: number, step: number, address: number): number | undefined {
  const view = new DataView(code.buffer, code.byteOffset, code.byteLength);
  for (let i = at; i + 8 <= at + step; i += 4) {
    const adrp = view.getUint32(i, true);
    const ldr = view.getUint32(i + 4, true);
    if ((adrp & 0x9f00001f) >>> 0 !== 0x90000010 || (ldr & 0xffc003ff) >>> 0 !== 0xf9400211) continue;
    const high = (adrp << 8) >> 13;
    const pages = (high << 2) | ((adrp >>> 29) & 3);
    return Math.floor((address + i) / 4096) * 4096 + pages * 4096 + ((ldr >>> 10) & 0xfff) * 8;
  }
  return undefined;
}
