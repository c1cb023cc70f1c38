/**
 * Is this ELF file a CPython interpreter, which version, and where are the things that unwinding needs? Found by
 * exported symbols, which every build has (extension modules need them), never by the file's name: `python3`, a
 * shared libpython, and a program that has CPython linked in all look the same.
 */
import { OutOfBounds } from '../../../common/base/byte-source.ts';
import { bytesAt, textBiasAt } from '../../../common/elf/bytes-at.ts';
import { type ElfFile, PT_LOAD } from '../../../common/elf/elf.ts';
import { findText } from '../../../common/elf/find-text.ts';
import { findFunctionParts } from '../../../common/elf/function-parts.ts';
import type { CodeRange } from '../../../common/elf/function-ranges.ts';
import { usesMusl } from '../../../common/elf/uses-musl.ts';
import { findNamedSymbols, type NamedSymbol } from '../../../common/symbols/named-symbols.ts';
import { UnsupportedRuntime } from '../contract.ts';
import { DEBUG_OFFSETS_BYTES, NoDebugOffsets, readDebugOffsets } from './debug-offsets.ts';
import { AUTO_TSS_KEY, layoutOf, type PythonLayout } from './layout.ts';
import type { ThreadAccess } from './thread-access.ts';
import * as amd64 from './thread-access.ts';
import * as arm64 from './thread-access-arm64.ts';

export interface PythonBinary {
  minor: number;
  /** `3.11.7`, or `3.9` where the file says no more. */
  version: string;
  isFreeThreaded: boolean;
  /** Newer than any version whose layout is known: tried, behind the same checks. */
  isGuess: boolean;
  layout: PythonLayout;
  /** ELF virtual addresses. */
  evalRanges: CodeRange[];
  codeType: number;
  /** Variable with the newest interpreter; 0: unknown. */
  interpreters: number;
  bound: ThreadAccess;
  current: ThreadAccess | undefined;
  /** Difference between virtual address and file offset of the interpreter loop. */
  textBias: number;
  isMusl: boolean;
}

const EVAL = '_PyEval_EvalFrameDefault';
const WANTED = [
  EVAL,
  '_PyRuntime',
  'PyCode_Type',
  'Py_Version',
  'PyGILState_GetThisThreadState',
  '_PyThreadState_GetCurrent',
  'PyThreadState_GetUnchecked',
  '_PyThreadState_UncheckedGet',
  '_PyThreadState_Current',
] as const;
type Wanted = (typeof WANTED)[number];
type Symbols = ReadonlyMap<Wanted, NamedSymbol>;

const DECODERS = { x86_64: amd64, aarch64: arm64 } as const;
const OLDEST = 6;

/** Undefined where the file is not CPython. Throws {@link UnsupportedRuntime}. */
export function detectPython(elf: ElfFile): PythonBinary | undefined {
  const symbols = findNamedSymbols(elf, EVAL, WANTED);
  const loop = symbols.get(EVAL);
  const codeType = symbols.get('PyCode_Type');
  if (!loop || !codeType) return undefined;
  const facts = readVersion(elf, symbols);
  if (facts.minor < OLDEST)
    throw new UnsupportedRuntime(`Python ${facts.version}: 3.${OLDEST} is the oldest`);
  const bound = findBoundThread(elf, symbols, facts.minor);
  if (!bound)
    throw new UnsupportedRuntime(`Python ${facts.version}: PyGILState_GetThisThreadState not decoded`);
  const textBias = textBiasAt(elf, loop.address);
  if (textBias === undefined)
    throw new UnsupportedRuntime(`Python ${facts.version}: the interpreter loop is in no segment`);
  return {
    ...facts,
    evalRanges: findFunctionParts(elf, { start: loop.address, end: loop.address + loop.size }),
    codeType: codeType.address,
    interpreters: findInterpreters(symbols, facts.layout),
    bound,
    current: findCurrentThread(elf, symbols, facts.minor),
    textBias,
    isMusl: usesMusl(elf),
  };
}

interface VersionFacts {
  minor: number;
  version: string;
  isFreeThreaded: boolean;
  isGuess: boolean;
  layout: PythonLayout;
}

function readVersion(elf: ElfFile, symbols: Symbols): VersionFacts {
  const runtime = symbols.get('_PyRuntime');
  const published = runtime && readPublished(elf, runtime.address);
  if (published) return published;
  const hex = readVersionHex(elf, symbols);
  const minor = hex ? (hex >>> 16) & 0xff : readCacheTag(elf);
  if (minor === undefined) throw new UnsupportedRuntime('CPython of unknown version');
  const version = hex ? formatVersion(hex) : `3.${minor}`;
  const layout = layoutOf(minor);
  if (!layout) throw new UnsupportedRuntime(`Python ${version}: its struct offsets are not known`);
  return { minor, version, isFreeThreaded: false, isGuess: false, layout };
}

function readPublished(elf: ElfFile, runtime: number): VersionFacts | undefined {
  const bytes = bytesAt(elf, runtime, DEBUG_OFFSETS_BYTES);
  if (!bytes) return undefined;
  try {
    const { versionHex, isFreeThreaded, isGuess, layout } = readDebugOffsets(bytes);
    const minor = (versionHex >>> 16) & 0xff;
    return { minor, version: formatVersion(versionHex), isFreeThreaded, isGuess, layout };
  } catch (error) {
    if (error instanceof NoDebugOffsets || error instanceof OutOfBounds) return undefined;
    throw error;
  }
}

/** Py_Version, 3.11 and later. */
function readVersionHex(elf: ElfFile, symbols: Symbols): number | undefined {
  const symbol = symbols.get('Py_Version');
  const bytes = symbol && bytesAt(elf, symbol.address, 4);
  const hex = bytes && new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  return hex !== undefined && hex >>> 24 === 3 ? hex : undefined;
}

const formatVersion = (hex: number): string => `${hex >>> 24}.${(hex >>> 16) & 0xff}.${(hex >>> 8) & 0xff}`;

/** Every CPython holds the tag that it puts into the names of its .pyc files: `cpython-39`. */
function readCacheTag(elf: ElfFile): number | undefined {
  const tag = findText(elf, '\0cpython-3', /\0cpython-3(\d{1,2})\0/);
  return tag ? Number(tag[1]) : undefined;
}

function readCode(
  elf: ElfFile,
  symbol: NamedSymbol | undefined,
): { address: number; bytes: Uint8Array } | undefined {
  if (!symbol || symbol.size < 4 || symbol.size > 4096) return undefined;
  const bytes = bytesAt(elf, symbol.address, symbol.size);
  return bytes && { address: symbol.address, bytes };
}

function findBoundThread(elf: ElfFile, symbols: Symbols, minor: number): ThreadAccess | undefined {
  const runtime = symbols.get('_PyRuntime')?.address ?? 0;
  const code = readCode(elf, symbols.get('PyGILState_GetThisThreadState'));
  const decoded = code && DECODERS[elf.machine].decodeBoundThread(code, runtime);
  if (decoded?.kind === 'key' && !isData(elf, decoded.address)) return undefined;
  // further in on arm64, where the locks before it are larger
  const key = elf.machine === 'x86_64' && AUTO_TSS_KEY[minor];
  return decoded ?? (runtime && key ? { kind: 'key', address: runtime + key + 4 } : undefined);
}

function findInterpreters(symbols: Symbols, { runtimeInterpreters }: PythonLayout): number {
  const runtime = symbols.get('_PyRuntime');
  return runtime && runtimeInterpreters > 0 ? runtime.address + runtimeInterpreters : 0;
}

const isData = (elf: ElfFile, address: number): boolean =>
  elf.segments.some((s) => s.type === PT_LOAD && address >= s.vaddr && address < s.vaddr + s.memsz);

/** From 3.12 on there is none for the whole process. */
const LAST_WITH_GLOBAL = 11;

function findCurrentThread(elf: ElfFile, symbols: Symbols, minor: number): ThreadAccess | undefined {
  const variable = symbols.get('_PyRuntime') ?? symbols.get('_PyThreadState_Current');
  for (const name of [
    '_PyThreadState_GetCurrent',
    'PyThreadState_GetUnchecked',
    '_PyThreadState_UncheckedGet',
  ] as const) {
    const code = readCode(elf, symbols.get(name));
    const access = code && DECODERS[elf.machine].decodeCurrentThread(code, variable?.address ?? 0);
    if (access?.kind === 'global' && (minor > LAST_WITH_GLOBAL || !isData(elf, access.address))) continue;
    if (access) return access;
  }
  return undefined;
}
