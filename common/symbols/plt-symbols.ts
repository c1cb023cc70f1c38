/**
 * Names for the stubs through which a file calls what other files export: `read@plt`. They have no symbols of
 * their own. Each stub jumps through a slot, and the relocation of that slot names the function; so the stub's
 * instructions are read for its slot, which works for every linker's layout (.plt, .plt.sec, .plt.got).
 *
 * A slot of the file's own indirect function (IRELATIVE) has only the address of what chooses the function. The symbol
 * there has the name that was called.
 */
import { type ElfFile, type Section, SHT_DYNSYM } from '../elf/elf.ts';
import { BIND_LOCAL } from './name-column.ts';
import { findStrings, forEachEntry, readU64 } from './section-entries.ts';
import type { NameSource, SymbolCandidates } from './symbol-candidates.ts';

const SHT_RELA = 4;
const RELA_BYTES = 24;
const SYMBOL_BYTES = 24;
const STUBS = /^\.i?plt(\.sec|\.got)?$/;
/** GLOB_DAT and JUMP_SLOT of amd64, then of arm64: the psABIs, "Relocation Types". */
const SLOT_TYPES = new Set([6, 7, 1025, 1026]);
/** IRELATIVE. */
const RESOLVER_TYPES = new Set([37, 1032]);
const MAX_RELOCATIONS = 1 << 20;
const MAX_PLT_BYTES = 64 << 20;

/** What a slot leads to: an index in .dynsym, or the address of a resolver. */
type Target = { symbol: number } | { resolver: number };

interface Stub {
  address: number;
  size: number;
  slot: number;
}

/** To be called when all symbols of the file are there. */
export function addPltSymbols(elf: ElfFile, candidates: SymbolCandidates): void {
  const sections = elf.sections.filter(({ name, size }) => STUBS.test(name) && size <= MAX_PLT_BYTES);
  if (sections.length === 0) return;
  const slots = readSlots(elf);
  const stubs = sections.flatMap((section) => findStubs(elf, section));
  addDynamicStubs(elf, candidates, stubs, slots);
  addResolverStubs(candidates, stubs, slots);
}

/** Slot address → where it leads, from all relocations of the PLT and of the GOT. */
function readSlots(elf: ElfFile): Map<number, Target> {
  const slots = new Map<number, Target>();
  for (const section of elf.sections) {
    if (section.type !== SHT_RELA || !/^\.rela\.(i?plt|dyn)$/.test(section.name)) continue;
    forEachEntry(elf, section, { entryBytes: RELA_BYTES, limit: MAX_RELOCATIONS }, (view, at) => {
      const type = view.getUint32(at + 8, true);
      const symbol = view.getUint32(at + 12, true);
      if (symbol !== 0 && SLOT_TYPES.has(type)) slots.set(readU64(view, at), { symbol });
      else if (RESOLVER_TYPES.has(type)) slots.set(readU64(view, at), { resolver: readU64(view, at + 16) });
    });
  }
  return slots;
}

function findStubs(elf: ElfFile, section: Section): Stub[] {
  const code = elf.sectionData(section);
  return elf.machine === 'x86_64' ? findStubsX86(code, section) : findStubsArm(code, section.addr);
}

/**
 * Stubs of 16 bytes; .plt.got may have some of 8, which its header says. `jmp *disp32(%rip)` is ff 25 and the
 * distance from the next instruction; endbr64 or bnd may precede it.
 */
function findStubsX86(code: Uint8Array, { addr, entsize }: Section): Stub[] {
  const view = new DataView(code.buffer, code.byteOffset, code.byteLength);
  const size = entsize === 8 ? 8 : 16;
  const stubs: Stub[] = [];
  for (let at = 0; at + size <= code.length; at += size) {
    for (let i = at; i + 6 <= at + size; i++) {
      if (code[i] !== 0xff || code[i + 1] !== 0x25) continue;
      stubs.push({ address: addr + at, size, slot: addr + i + 6 + view.getInt32(i + 2, true) });
      break;
    }
  }
  return stubs;
}

const BTI_C = 0xd503245f;
const BR_X17 = 0xd61f0220;

/**
 * `adrp x16, page`, `ldr x17, [x16, #offset]` and soon `br x17`, at times after it was authenticated, behind an optional
 * `bti c`. Where one begins has to be
 * found: the first stub's size is another one, and there may be a nop behind each.
 */
function findStubsArm(code: Uint8Array, address: number): Stub[] {
  const view = new DataView(code.buffer, code.byteOffset, code.byteLength);
  const word = (at: number): number => (at + 4 <= code.length ? view.getUint32(at, true) : 0);
  const stubs: Stub[] = [];
  for (let i = 0; i + 8 <= code.length; i += 4) {
    const [adrp, ldr] = [word(i), word(i + 4)];
    if ((adrp & 0x9f00001f) >>> 0 !== 0x90000010 || (ldr & 0xffc003ff) >>> 0 !== 0xf9400211) continue;
    const branch = [i + 8, i + 12, i + 16].find((at) => word(at) === BR_X17);
    if (branch === undefined) continue;
    const start = i >= 4 && word(i - 4) === BTI_C ? i - 4 : i;
    const pages = (((adrp << 8) >> 13) << 2) | ((adrp >>> 29) & 3);
    const slot = Math.floor((address + i) / 4096) * 4096 + pages * 4096 + ((ldr >>> 10) & 0xfff) * 8;
    stubs.push({ address: address + start, size: branch + 4 - start, slot });
  }
  return stubs;
}

function addDynamicStubs(
  elf: ElfFile,
  candidates: SymbolCandidates,
  stubs: readonly Stub[],
  slots: ReadonlyMap<number, Target>,
): void {
  const symbols = elf.sections.find(({ type }) => type === SHT_DYNSYM);
  if (!symbols) return;
  const entries = elf.sectionData(symbols);
  const view = new DataView(entries.buffer, entries.byteOffset, entries.byteLength);
  const { offset, size: bytes } = findStrings(elf, symbols);
  const source = candidates.addSource({ offset, size: bytes, suffix: '@plt', isOfResolvers: false });
  for (const { address, size, slot } of stubs) {
    const target = slots.get(slot);
    const at = target && 'symbol' in target ? target.symbol * SYMBOL_BYTES : view.byteLength;
    if (at + SYMBOL_BYTES <= view.byteLength)
      candidates.add(address, size, BIND_LOCAL, source, view.getUint32(at, true));
  }
}

/** Each with all names of the indirect functions at its resolver: the most public one is chosen as for functions. */
function addResolverStubs(
  candidates: SymbolCandidates,
  stubs: readonly Stub[],
  slots: ReadonlyMap<number, Target>,
): void {
  const byResolver = new Map<number, Stub[]>();
  for (const stub of stubs) {
    const target = slots.get(stub.slot);
    if (!target || !('resolver' in target)) continue;
    const known = byResolver.get(target.resolver);
    if (known) known.push(stub);
    else byResolver.set(target.resolver, [stub]);
  }
  if (byResolver.size === 0) return;
  const stubSources = new Map<NameSource, number>();
  const count = candidates.count;
  for (let i = 0; i < count; i++) {
    const source = candidates.sourceOf(i);
    const called = source.isOfResolvers && byResolver.get(candidates.base + candidates.starts[i]!);
    if (!called) continue;
    let names = stubSources.get(source);
    if (names === undefined) {
      names = candidates.addSource({ ...source, suffix: '@plt', isOfResolvers: false });
      stubSources.set(source, names);
    }
    for (const { address, size } of called)
      candidates.add(address, size, candidates.bindOf(i), names, candidates.nameAts[i]!);
  }
}
