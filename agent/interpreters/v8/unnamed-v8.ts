/**
 * V8 in a file that does not say what a debugger needs to know: Chromium, Electron, Deno. Deno's build (the crate `v8`,
 * whose versions end in "-rusty") is laid out as Node's of the same version; only numbers of types and kinds differ, which
 * were read in live processes of Deno 2.5 to 2.9. Any other build may be laid out in another way (Chromium's and
 * Electron's compress pointers), so its JavaScript has no names.
 */
import type { ElfFile } from '../../../common/elf/elf.ts';
import { UnsupportedRuntime } from '../contract.ts';
import { WRITES_NAMES } from './advice.ts';
import { readConstants, windowsOfConstants } from './constants.ts';
import { findEmbeddedBlob } from './embedded-blob.ts';

export interface UnnamedV8 {
  version: { major: number; minor: number; text: string };
  constants: ReadonlyMap<string, number>;
  blob: { start: number; length: number };
}

/** A flag of V8's, in all builds since 2018. */
const FLAG = 'interpreted_frames_native_stack';
const VERSION = /(\d{1,3})\.(\d{1,3})\.(\d{1,5})\.\d{1,5}$/;
const MARK = '-rusty\0';
const MAX_VERSION_BYTES = 24;
/** Programs with V8 in them have more. */
const MIN_FILE_BYTES = 48 << 20;

type Types = Readonly<Record<'SharedFunctionInfo' | 'ScopeInfo' | 'Script' | 'BytecodeArray', number>>;

interface Build {
  types: Types;
  /** Frame type. */
  wasm: number;
  /** Code kind. */
  baseline: number;
}

/** By V8's major and minor version. Types behind BytecodeArray follow it in all of them. */
const BUILDS: Readonly<Record<string, Build>> = {
  '14.0': {
    types: { SharedFunctionInfo: 286, ScopeInfo: 284, Script: 165, BytecodeArray: 184 },
    ...{ wasm: 4, baseline: 10 },
  },
  '14.7': {
    types: { SharedFunctionInfo: 288, ScopeInfo: 286, Script: 166, BytecodeArray: 185 },
    ...{ wasm: 24, baseline: 11 },
  },
  '14.9': {
    types: { SharedFunctionInfo: 278, ScopeInfo: 276, Script: 167, BytecodeArray: 185 },
    ...{ wasm: 24, baseline: 11 },
  },
  '15.0': {
    types: { SharedFunctionInfo: 278, ScopeInfo: 276, Script: 166, BytecodeArray: 185 },
    ...{ wasm: 24, baseline: 11 },
  },
};
const BEHIND_BYTECODE_ARRAY: Readonly<Record<string, number>> = {
  Code: 1,
  InstructionStream: 7,
  ProtectedFixedArray: 8,
  TrustedByteArray: 11,
  TrustedFixedArray: 12,
  TrustedWeakFixedArray: 14,
};
/** What V8 exports in Node 26. */
const CONSTANTS: Readonly<Record<string, number>> = {
  SmiShiftSize: 31,
  HeapObjectTag: 1,
  scopeinfo_idx_first_vars: 5,
  DeoptimizationDataWrappedSharedFunctionInfoIndex: 7,
  class_BytecodeArray__data__uintptr_t: 64,
};

/** Undefined where there is no V8. Throws {@link UnsupportedRuntime}. */
export function findUnnamedV8(elf: ElfFile): UnnamedV8 | undefined {
  if (elf.source.size < MIN_FILE_BYTES) return undefined;
  const { hasFlag, version } = findMarks(elf);
  if (!hasFlag) return undefined;
  if (!version)
    throw new UnsupportedRuntime(`V8 of a build that is not described in the file (${WRITES_NAMES})`);
  const { major, minor, text } = version;
  const build = BUILDS[`${major}.${minor}`];
  if (!build) throw new UnsupportedRuntime(`V8 ${text} of Deno: known are ${Object.keys(BUILDS).join(', ')}`);
  if (elf.machine !== 'x86_64') throw new UnsupportedRuntime(`V8 ${text}: only amd64 is supported`);
  const data = readConstants(elf);
  const blob = data && findEmbeddedBlob(elf, data);
  if (!blob) throw new UnsupportedRuntime(`V8 ${text}: its built-in functions were not found`);
  return { version, constants: constantsOf(build), blob };
}

/** Read until both are there. */
function findMarks(elf: ElfFile): { hasFlag: boolean; version: UnnamedV8['version'] | undefined } {
  let hasFlag = false;
  let version: UnnamedV8['version'] | undefined;
  for (const data of windowsOfConstants(elf)) {
    hasFlag ||= data.includes(FLAG);
    version ??= readVersion(data);
    if (hasFlag && version) break;
  }
  return { hasFlag, version };
}

function readVersion(data: Buffer): UnnamedV8['version'] | undefined {
  const end = data.indexOf(MARK);
  if (end < 0) return undefined;
  const found = VERSION.exec(data.toString('latin1', Math.max(0, end - MAX_VERSION_BYTES), end));
  if (!found) return undefined;
  const [major, minor, build] = found.slice(1).map(Number) as [number, number, number];
  return { major, minor, text: `${major}.${minor}.${build}` };
}

function constantsOf({ types, wasm, baseline }: Build): Map<string, number> {
  const behind = Object.entries(BEHIND_BYTECODE_ARRAY).map(([name, by]) => [name, types.BytecodeArray + by]);
  const all = Object.entries({ ...types, ...Object.fromEntries(behind) }).map(
    ([name, type]) => [`type_${name}__TYPE`, type as number] as const,
  );
  const own = { frametype_WasmFrame: wasm, CodeKindBaseline: baseline };
  return new Map([...Object.entries({ ...CONSTANTS, ...own }), ...all]);
}
