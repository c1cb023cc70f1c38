/**
 * Where in a file a probe goes: at functions by the names that people know them by, or at what the program's authors have
 * put there for it (SystemTap's notes). In a worker: whoever owns the file may have made it up.
 */
import { fstatSync } from 'node:fs';
import { OutOfBounds } from '../../common/base/byte-source.ts';
import {
  ElfError,
  type ElfFile,
  parseElf,
  SHF_EXECINSTR,
  SHT_DYNSYM,
  SHT_SYMTAB,
} from '../../common/elf/elf.ts';
import { readGoVersion } from '../../common/elf/go-build-info.ts';
import { findGoPclntab } from '../../common/elf/go-pclntab.ts';
import { readNotes } from '../../common/elf/notes.ts';
import { demangle } from '../../common/symbols/demangle/demangle.ts';
import { readMiniDebugInfo } from '../../common/symbols/mini-debug-info.ts';
import { forEachEntry, readStrings, readU64 } from '../../common/symbols/section-entries.ts';
import { findSeparateDebugInfo } from '../../common/symbols/separate-symbols.ts';
import { DebugFiles } from '../files/debug-files.ts';
import { fdSource } from '../files/fd-source.ts';
import { FilePool } from '../files/file-pool.ts';
import { ownRoot } from '../files/root-directory.ts';
import type { WorkHandler } from '../workers/protocol.ts';
import { GO_ALLOCATOR, probesOfAllocator } from './allocators.ts';

export interface ProbeRequest {
  fd: number;
  /** Of the file, for those beside it and with its build ID: its symbols may have been split off. */
  path: string;
  /** Functions by name, a probe of the file's own, or what is known of allocators. */
  wanted:
    | { symbol: string; offset: number; isAtReturn: boolean }
    | { provider: string; name: string }
    | 'allocators';
}

/** Offsets in the file. */
export interface FoundProbe {
  offset: number;
  /** 0: there is none. */
  semaphore: number;
  /** Of the allocator's function. */
  name?: string;
}

export interface ProbeAnswer {
  found: FoundProbe[];
  /** Where nothing was found: names that it may have meant. */
  similar: string[];
  /** It is there, but it is Go's, whose stacks move: what the kernel writes to them would be lost. */
  isMovedByGo?: boolean;
}

const MAX_FOUND = 256;
const MAX_SIMILAR = 5;
const MAX_ENTRIES = 1 << 24;
const ENTRY_BYTES = 24;
const STT_FUNC = 2;

export const createProbeHandler = (): WorkHandler<ProbeRequest, ProbeAnswer> => ({
  async handle({ fd, path, wanted }) {
    const elf = parseElf(fdSource(fd));
    if (wanted !== 'allocators' && 'provider' in wanted) return findUsdt(elf, wanted);
    const pool = new FilePool();
    const place = { path, root: ownRoot(), owner: fstatSync(fd, { bigint: true }) };
    try {
      const separate = findSeparateDebugInfo(elf, new DebugFiles(place, pool));
      const others = [separate?.elf, await miniDebugInfo(elf)].filter((one) => one !== undefined);
      return wanted === 'allocators' ? findAllocators(elf, others) : findFunctions(elf, others, wanted);
    } finally {
      pool.close();
    }
  },
});

async function miniDebugInfo(elf: ElfFile): Promise<ElfFile | undefined> {
  try {
    return await readMiniDebugInfo(elf);
  } catch (error) {
    if (error instanceof ElfError) return undefined;
    throw error;
  }
}

/** As it stands in the file, or as people write it: with its parameters or without. */
export function findFunctions(
  elf: ElfFile,
  others: readonly ElfFile[],
  { symbol, offset, isAtReturn }: { symbol: string; offset: number; isAtReturn: boolean },
): ProbeAnswer {
  const addresses = new Set<number>();
  const similar = new Set<string>();
  const word = longestWord(symbol);
  const isWanted = (name: string): boolean =>
    name === symbol ||
    (name.includes(word) && (demangle(name) === symbol || demangle(name, 'short') === symbol));
  const lower = word.toLowerCase();
  let isMovedByGo = false;
  const visit = (name: string, address: number, isOfGo = false): void => {
    if (isWanted(name)) {
      addresses.add(address);
      isMovedByGo ||= isOfGo && isAtReturn;
    } else if (similar.size < MAX_SIMILAR && name.toLowerCase().includes(lower))
      similar.add(demangle(name, 'short'));
  };
  for (const file of [elf, ...others]) forEachFunction(file, visit);
  if (isMovedByGo) return { found: [], similar: [], isMovedByGo };
  const found = [...addresses].flatMap((address) => offsetOfCode(elf, address + offset) ?? []);
  return {
    found: found.slice(0, MAX_FOUND).map((at) => ({ offset: at, semaphore: 0 })),
    similar: found.length === 0 ? [...similar] : [],
  };
}

/** One name for each place. */
export function findAllocators(elf: ElfFile, others: readonly ElfFile[]): ProbeAnswer {
  const names = new Map<number, string>();
  const isUsable = (name: string): boolean => name !== GO_ALLOCATOR || passesInRegisters(elf);
  for (const file of [elf, ...others])
    forEachFunction(file, (name, address) => {
      if (probesOfAllocator(name).length > 0 && !names.has(address) && isUsable(name))
        names.set(address, name);
    });
  const found = [...names].flatMap(([address, name]) => {
    const offset = offsetOfCode(elf, address);
    return offset === undefined ? [] : [{ offset, semaphore: 0, name }];
  });
  return { found: found.slice(0, MAX_FOUND), similar: [] };
}

/** Go passes its arguments on the stack before 1.17, and 1.18 on arm64. */
function passesInRegisters(elf: ElfFile): boolean {
  const [major = 0, minor = 0] = (readGoVersion(elf) ?? '')
    .split('.')
    .map((part) => Number.parseInt(part, 10));
  return major > 1 || (major === 1 && minor >= 18);
}

/** Of the name itself, which mangled names hold as it is. */
const longestWord = (symbol: string): string =>
  (symbol.replace(/[(<].*$/s, '') || symbol)
    .split(/\W+/)
    .reduce((longest, word) => (word.length > longest.length ? word : longest), '');

function offsetOfCode(elf: ElfFile, address: number): number | undefined {
  const isCode =
    elf.sections.length === 0 ||
    elf.sections.some(
      ({ flags, addr, size }) => flags & SHF_EXECINSTR && address >= addr && address < addr + size,
    );
  return isCode ? elf.addressToFileOffset(address) : undefined;
}

function forEachFunction(
  elf: ElfFile,
  visit: (name: string, address: number, isOfGo?: boolean) => void,
): void {
  for (const section of elf.sections) {
    if (section.type !== SHT_SYMTAB && section.type !== SHT_DYNSYM) continue;
    ignoreDamage(() => {
      const strings = Buffer.from(readStrings(elf, section));
      forEachEntry(elf, section, { entryBytes: ENTRY_BYTES, limit: MAX_ENTRIES }, (view, at) => {
        if ((view.getUint8(at + 4) & 0xf) !== STT_FUNC || view.getUint16(at + 6, true) === 0) return;
        const name = textAt(strings, view.getUint32(at, true));
        // without its version
        visit(name.replace(/@.*$/, ''), readU64(view, at + 8));
      });
    });
  }
  ignoreDamage(() => {
    const table = findGoPclntab(elf);
    if (!table) return;
    const names = Buffer.from(table.names);
    for (const { start, nameAt } of table.functions()) visit(textAt(names, nameAt), start, true);
  });
}

/** What was found before the damage stays. */
function ignoreDamage(read: () => void): void {
  try {
    read();
  } catch (error) {
    if (!(error instanceof OutOfBounds || error instanceof ElfError)) throw error;
  }
}

function textAt(bytes: Buffer, at: number): string {
  const end = bytes.indexOf(0, at);
  return at < bytes.length && end >= 0 ? bytes.toString('utf8', at, end) : '';
}

const NOTE_TYPE = 3;
/** Behind three addresses. */
const TEXTS_AT = 24;
const MAX_NOTES_BYTES = 16 << 20;

interface UsdtNote {
  provider: string;
  name: string;
  address: number;
  base: number;
  semaphore: number;
}

/**
 * Section .note.stapsdt: a note for each place, of its address, that of .stapsdt.base as it was linked (prelinking may have
 * moved both), that of a counter of listeners or 0, provider and name.
 */
export function findUsdt(elf: ElfFile, { provider, name }: { provider: string; name: string }): ProbeAnswer {
  const section = elf.section('.note.stapsdt');
  const notes = section ? readUsdtNotes(elf.sectionData(section, MAX_NOTES_BYTES)) : [];
  const base = elf.section('.stapsdt.base')?.addr;
  const found: FoundProbe[] = [];
  for (const note of notes) {
    if (note.provider !== provider || note.name !== name) continue;
    const moved = base === undefined ? 0 : base - note.base;
    const offset = offsetOfCode(elf, note.address + moved);
    const semaphore = note.semaphore === 0 ? 0 : elf.addressToFileOffset(note.semaphore + moved);
    if (offset !== undefined && semaphore !== undefined && found.length < MAX_FOUND)
      found.push({ offset, semaphore });
  }
  const all = [...new Set(notes.map((note) => `${note.provider}:${note.name}`))];
  return { found, similar: found.length === 0 ? all.slice(0, 4 * MAX_SIMILAR) : [] };
}

/** Those before the damage, where there is some. */
function readUsdtNotes(bytes: Uint8Array): UsdtNote[] {
  const notes: UsdtNote[] = [];
  ignoreDamage(() => {
    for (const { name: owner, type, descriptor } of readNotes(bytes)) {
      if (owner !== 'stapsdt' || type !== NOTE_TYPE || descriptor.length <= TEXTS_AT) continue;
      const data = Buffer.from(descriptor);
      const word = (index: number): number => Number(data.readBigUInt64LE(8 * index));
      const [provider = '', name = ''] = data.toString('utf8', TEXTS_AT).split('\0');
      notes.push({ provider, name, address: word(0), base: word(1), semaphore: word(2) });
    }
  });
  return notes;
}
