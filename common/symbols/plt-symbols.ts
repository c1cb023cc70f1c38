/**
 * Names for the stubs through which a file calls what other files export: `read@plt`. They have no symbols of
 * their own. Each stub jumps through a slot, and the relocation of that slot names the function; so the stub's
 * instructions are read for its slot, which works for every linker's layout (.plt, .plt.sec, .plt.got).
 */
import { type ElfFile, type Section, SHT_DYNSYM } from '../elf/elf.ts';
import { BIND_LOCAL } from './name-column.ts';
import { readStrings } from './string-table.ts';
import type { SymbolCandidates } from './symbol-candidates.ts';

const SHT_RELA = 4;
const RELA_BYTES = 24;
const SYMBOL_BYTES = 24;
const MAX_RELOCATIONS = 1 << 20;
const MAX_PLT_BYTES = 64 << 20;
const MAX_NAME = 4096;
const AT_PLT = new TextEncoder().encode('@plt\0');

export function addPltSymbols(elf: ElfFile, candidates: SymbolCandidates): void {
  const stubs = elf.sections.filter(({ name }) => /^\.plt(\.sec|\.got)?$/.test(name));
  const symbols = elf.sections.find(({ type }) => type === SHT_DYNSYM);
  if (stubs.length === 0 || !symbols) return;
  const slots = readSlots(elf);
  const names = { entries: elf.sectionData(symbols), strings: readStrings(elf, symbols) };
  const findSlot = elf.machine === 'x86_64' ? findSlotX86 : findSlotArm;
  for (const section of stubs) {
    if (section.size > MAX_PLT_BYTES) continue;
    const code = elf.sectionData(section);
    const step = stubBytes(section);
    for (let at = 0; at + step <= code.length; at += step) {
      const slot = findSlot(code, at, step, section.addr);
      const symbol = slot === undefined ? undefined : slots.get(slot);
      if (symbol === undefined) continue;
      const name = pltName(names, symbol);
      if (name) candidates.add(section.addr + at, step, BIND_LOCAL, name, 0);
    }
  }
}

/** .plt.got may have stubs of 8 bytes; all others have 16. The linkers note it in the section header. */
const stubBytes = (section: Section): number => (section.entsize === 8 ? 8 : 16);

/** Slot address → index in .dynsym, from all relocations of the PLT and of the GOT. */
function readSlots(elf: ElfFile): Map<number, number> {
  const slots = new Map<number, number>();
  for (const section of elf.sections) {
    if (section.type !== SHT_RELA || !/^\.rela\.(plt|dyn)$/.test(section.name)) continue;
    const bytes = elf.sectionData(section);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const end = Math.min(bytes.length, MAX_RELOCATIONS * RELA_BYTES);
    for (let at = 0; at + RELA_BYTES <= end; at += RELA_BYTES) {
      const symbol = view.getUint32(at + 12, true);
      if (symbol !== 0) slots.set(view.getUint32(at + 4, true) * 2 ** 32 + view.getUint32(at, true), symbol);
    }
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

interface DynamicNames {
  entries: Uint8Array;
  strings: Uint8Array;
}

function pltName({ entries, strings }: DynamicNames, symbol: number): Uint8Array | undefined {
  const at = symbol * SYMBOL_BYTES;
  if (at + SYMBOL_BYTES > entries.length) return undefined;
  const start = new DataView(entries.buffer, entries.byteOffset + at, 4).getUint32(0, true);
  const end = strings.indexOf(0, start);
  if (end <= start || end - start > MAX_NAME) return undefined;
  const name = new Uint8Array(end - start + AT_PLT.length);
  name.set(strings.subarray(start, end));
  name.set(AT_PLT, end - start);
  return name;
}
