import { ElfError, type ElfFile } from '../../../common/elf/elf.ts';
import { DEFAULT_LIMITS, type DwarfLimits, openDwarf } from '../../../common/symbols/dwarf/dwarf-source.ts';
import { readSymbolTable } from '../../../common/symbols/elf-symbols.ts';
import {
  type FindFunction,
  type FunctionPlace,
  functionFinder,
} from '../../../common/symbols/function-bounds.ts';
import { readGoSymbols } from '../../../common/symbols/go-pclntab.ts';
import { readMiniDebugInfo } from '../../../common/symbols/mini-debug-info.ts';
import { IN_MEMORY, nameless, type Scratch, scratchOf } from '../../../common/symbols/scratch.ts';
import { findSeparateDebugInfo, hasSymbols } from '../../../common/symbols/separate-symbols.ts';
import type { SymbolSource } from '../../../common/symbols/source.ts';
import { sourceWithFallback, tableSource } from '../../../common/symbols/source-fallback.ts';
import { DebugFiles, type ElfPlace } from '../../files/debug-files.ts';
import { FilePool, type FileStats, type Probe } from '../../files/file-pool.ts';
import { codeFollower } from './code-follower.ts';

export interface OpenSymbols extends SymbolSource {
  /** The function that call frame information of the file has at an ELF virtual address, named or not. */
  findFunction(address: number): FunctionPlace;
  /** Counts for files that the ELF file refers to, since the last call. */
  takeFileStats(): FileStats;
  /** The files that names depend on up to now, besides the ELF file; undefined where that can't be told. */
  readonly probes: readonly Probe[] | undefined;
  /** Closes the files that look-ups opened. */
  close(): void;
}

/** `full`: with inlined functions and lines, from DWARF; `names`: functions, from symbol tables alone. */
export type SourceDetail = 'full' | 'names';

/** With tables outside memory, what was parsed of DWARF comes back cheaply. */
const OUTSIDE_LIMITS = { ...DEFAULT_LIMITS, cacheBytes: 2 << 20 };

export interface SymbolRoom {
  /** Scratch file for tables; it stays the caller's. */
  scratch?: Scratch;
  /** Limit for compressed debug sections, see {@link DwarfLimits}. */
  decompressedBytes?: number;
}

/** The sources of names of an ELF file, best first. */
export async function openSymbols(
  elf: ElfFile,
  place: ElfPlace,
  detail: SourceDetail = 'full',
  { scratch = IN_MEMORY, decompressedBytes = DEFAULT_LIMITS.decompressedBytes }: SymbolRoom = {},
): Promise<OpenSymbols> {
  const pool = new FilePool();
  const base = scratch.isOutside ? OUTSIDE_LIMITS : DEFAULT_LIMITS;
  const sources = await openSources(elf, new DebugFiles(place, pool), pool, {
    detail,
    scratch,
    limits: { ...base, decompressedBytes },
  });
  const fallback = sourceWithFallback(sources.filter((source) => source !== undefined));
  let find: FindFunction | undefined;
  let told = 0;
  return {
    findFunction: (address) => {
      find ??= functionFinder([elf]);
      return find(address);
    },
    lookup: (address, range) => fallback.lookup(address, range),
    get byteLength() {
      return fallback.byteLength;
    },
    takeFileStats: () => {
      const dwarfDamaged = (fallback.damaged ?? 0) - told;
      told += dwarfDamaged;
      return { ...pool.takeStats(), dwarfDamaged };
    },
    get probes() {
      return pool.probes;
    },
    close: () => pool.close(),
  };
}

async function openSources(
  elf: ElfFile,
  files: DebugFiles,
  pool: FilePool,
  { detail, scratch, limits }: { detail: SourceDetail; scratch: Scratch; limits: DwarfLimits },
): Promise<(SymbolSource | undefined)[]> {
  // Go's own table knows lines and inlined calls, and costs far less than DWARF
  const go = readGoSymbols(elf);
  const readDwarf = () => (detail === 'full' ? openDwarf(elf, files, elf, limits, scratch) : undefined);
  // and leaves the rest for what it does not know, as C in a Go program
  const dwarf = go ? deferredSource(readDwarf) : readDwarf();
  const followCode = codeFollower(elf);
  const own = deferredSource(() => tableSource(readSymbolTable(elf, { scratch, followCode })));
  if (hasSymbols(elf) && (go || dwarf)) return [go, dwarf, own];
  if (hasSymbols(elf) && detail === 'names') return [go, own];
  const separate = findSeparateDebugInfo(elf, files);
  const wantsDwarf = detail === 'full' && !go && !dwarf;
  const room = separate ? scratchOf(scratch, separate.identity) : scratch;
  const separateDwarf =
    separate && wantsDwarf ? openDwarf(separate.elf, separate.files, elf, limits, room) : undefined;
  if (hasSymbols(elf)) return [go, dwarf, separateDwarf, own];
  // either has the whole symbol table, of which the file itself kept .dynsym
  const moved =
    separate && hasSymbols(separate.elf)
      ? { elf: separate.elf, room }
      : { elf: await readMini(elf, pool), room: nameless(scratch) };
  const movedElf = moved.elf;
  const movedTable =
    movedElf &&
    deferredSource(() =>
      tableSource(readSymbolTable(movedElf, { scratch: moved.room, code: elf, followCode })),
    );
  return [go, dwarf, separateDwarf, movedTable, own];
}

/** Opened when it is asked for the first time. */
function deferredSource(open: () => SymbolSource | undefined): SymbolSource {
  let source: SymbolSource | undefined;
  let isOpen = false;
  return {
    lookup(address, range) {
      if (!isOpen) source = open();
      isOpen = true;
      return source?.lookup(address, range) ?? [];
    },
    get byteLength() {
      return source?.byteLength ?? 0;
    },
    get damaged() {
      return source?.damaged ?? 0;
    },
  };
}

async function readMini(elf: ElfFile, pool: FilePool): Promise<ElfFile | undefined> {
  try {
    return await readMiniDebugInfo(elf);
  } catch (error) {
    if (!(error instanceof ElfError)) throw error;
    pool.countDamaged();
    return undefined;
  }
}
