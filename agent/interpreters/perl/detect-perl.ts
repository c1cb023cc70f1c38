/**
 * Is Perl in this ELF file, which version, and where is what unwinding needs? Told by symbols that extensions need, never by the
 * file's name.
 */
import { bytesAt, textBiasAt } from '../../../common/elf/bytes-at.ts';
import type { ElfFile } from '../../../common/elf/elf.ts';
import { usesMusl } from '../../../common/elf/uses-musl.ts';
import { findGlobalSlot } from '../../../common/symbols/global-slot.ts';
import { findNamedSymbols, type NamedSymbol } from '../../../common/symbols/named-symbols.ts';
import { UnsupportedRuntime } from '../contract.ts';
import { layoutOf, OPERATION, type PerlLayout } from './layout.ts';

/** Where the interpreter is. Addresses are ELF virtual addresses. */
export type PerlAccess =
  /** Each thread has its own, under the pthread key whose number stands there; in a library, at the address that stands in a slot. */
  | { kind: 'key'; address: number; isSlot: boolean }
  /** The one interpreter; a pointer to it stands there. */
  | { kind: 'pointer'; address: number; isSlot: boolean }
  /** There is none, its members are variables. */
  | { kind: 'globals' };

export interface PerlBinary {
  /** `5.36.0`. */
  version: string;
  layout: PerlLayout;
  /** By enum ef_perl_function; undefined where the build has it not. */
  functions: readonly (NamedSymbol | undefined)[];
  access: PerlAccess;
  /** PL_op, PL_curcop, PL_curstackinfo: offsets in the interpreter, or addresses. */
  operation: number;
  statement: number;
  stackInfo: number;
  /** PL_compiling is there, or somewhere in it. */
  compiling: { at: number; bytes: number };
  /** Statements keep their file as a text; else as a symbol. */
  hasThreads: boolean;
  /** Difference between virtual address and file offset of the code. */
  textBias: number;
  isMusl: boolean;
}

const MARKER = 'Perl_runops_standard';
const VERSION = ['PL_revision', 'PL_version', 'PL_subversion'] as const;
/** In the order of enum ef_perl_function. */
const FUNCTIONS = [
  MARKER,
  'Perl_runops_debug',
  'Perl_call_sv',
  'Perl_amagic_call',
  'Perl_regexec_flags',
  'perl_run',
  'perl_parse',
] as const;
const GLOBALS = ['PL_op', 'PL_curcop', 'PL_curstackinfo', 'PL_compiling'] as const;
const WANTED = [...VERSION, ...FUNCTIONS, ...GLOBALS, 'PL_thr_key', 'PL_curinterp'] as const;
type Symbols = ReadonlyMap<(typeof WANTED)[number], NamedSymbol>;
/** More than an interpreter has, less than is between two of them. */
const INTERPRETER_BYTES = 0x1000;

/** Undefined where the file has no Perl. Throws {@link UnsupportedRuntime}, ElfError, OutOfBounds. */
export function detectPerl(elf: ElfFile): PerlBinary | undefined {
  const symbols = findNamedSymbols(elf, MARKER, WANTED);
  const loop = symbols.get(MARKER);
  const numbers = VERSION.map((name) => byteAt(elf, symbols.get(name)?.address));
  if (!loop || numbers.includes(undefined)) return undefined;
  const version = numbers.join('.');
  const layout = numbers[0] === 5 ? layoutOf(numbers[1]!) : undefined;
  if (!layout) throw new UnsupportedRuntime(`Perl ${version}: 5.28 is the oldest`);
  const textBias = textBiasAt(elf, loop.address);
  if (textBias === undefined) throw new UnsupportedRuntime(`Perl ${version}: ${MARKER} is in no segment`);
  return {
    version,
    layout,
    functions: FUNCTIONS.map((name) => symbols.get(name)),
    ...placesOf(elf, symbols, layout, version),
    hasThreads: symbols.has('PL_thr_key'),
    textBias,
    isMusl: usesMusl(elf),
  };
}

function placesOf(
  elf: ElfFile,
  symbols: Symbols,
  { statement, stackInfo }: PerlLayout,
  version: string,
): Pick<PerlBinary, 'access' | 'operation' | 'statement' | 'stackInfo' | 'compiling'> {
  const globals = GLOBALS.map((name) => symbols.get(name)?.address);
  if (globals.every((address) => address !== undefined)) {
    const [operation, statementAt, stackInfoAt, compiling] = globals as [number, number, number, number];
    return {
      access: { kind: 'globals' },
      operation,
      statement: statementAt,
      stackInfo: stackInfoAt,
      compiling: { at: compiling, bytes: 1 },
    };
  }
  const [key, pointer] = [symbols.get('PL_thr_key'), symbols.get('PL_curinterp')];
  if (!key && !pointer) throw new UnsupportedRuntime(`Perl ${version}: its interpreter was not found`);
  const { address } = (key ?? pointer)!;
  const slot = findGlobalSlot(elf, address);
  return {
    access: { kind: key ? 'key' : 'pointer', address: slot ?? address, isSlot: slot !== undefined },
    operation: OPERATION,
    statement,
    stackInfo,
    compiling: { at: 0, bytes: INTERPRETER_BYTES },
  };
}

const byteAt = (elf: ElfFile, address: number | undefined): number | undefined =>
  address === undefined ? undefined : bytesAt(elf, address, 1)?.[0];
