/**
 * Where fields of V8's objects are. Most offsets come from the file's own constants; what a version does not export
 * was looked up in Node 16 to 26 (V8 9.4 to 14.6), in live processes.
 */
import { UnsupportedRuntime } from '../contract.ts';
import { WRITES_NAMES } from './advice.ts';
import type { V8Binary } from './detect-v8.ts';
import type { PositionFlags } from './positions.ts';

export interface V8Layout {
  /** 1103 for 11.3. */
  version: number;
  /** V8's kBytecodeSizes, where the file shows it. */
  bytecodeSizes: Uint8Array | undefined;
  types: {
    shared: number;
    scopeInfo: number;
    script: number;
    bytecodeArray: number;
    code: number;
    /** Undefined up to V8 11.0, where instructions stand inside Code. */
    instructionStream: number | undefined;
    /** Smaller types are strings. */
    firstNonString: number;
    byteArrays: readonly number[];
    fixedArrays: readonly number[];
  };
  functionShared: number;
  shared: { data: number; name: number; script: number };
  script: { name: number; source: number };
  scope: { firstVars: number; localCount: number; hasPositions: boolean };
  bytecodes: { length: number; positions: number; data: number };
  code: { deopt: number; positions: number; start: number; flags: number; size: number };
  /** From an instruction stream to its first instruction. */
  streamHeader: number;
  kindMask: number;
  kindBaseline: number;
  deopt: { literals: number; shared: number; isSharedWrapped: boolean; positions: number };
  /** Flags below the first number of an entry in a position table. */
  positionFlags: PositionFlags;
  /** Maglev compiles loops twice: peeled-loops.ts. */
  hasPeeledLoops: boolean;
  wasm: {
    /** 0: this V8 names none. */
    frameType: number;
    /** Fields to follow from what a frame holds to the WasmModuleObject. */
    moduleObject: readonly number[];
    /** In a WasmCode. */
    codeSize: number;
    codeIndex: number;
    /** Optimized code says what was inlined where. */
    hasInlinings: boolean;
    /** What JavaScript has of a function that a module exports; undefined where V8 inlines none into JavaScript. */
    exported: WasmExported | undefined;
  };
  /** Names of frame types by number. */
  frameTypes: Readonly<Record<number, string>>;
}

/** A WasmExportedFunctionData. */
interface WasmExported {
  type: number;
  /** Fields to follow from it to the WasmModuleObject. */
  moduleObject: readonly number[];
  index: number;
}

const OLDEST = 904;
const PEELING = 1205;

/** Throws {@link UnsupportedRuntime}. */
export function layoutOf({ version: { major, minor, text }, constants, bytecodeSizes }: V8Binary): V8Layout {
  const version = major * 100 + minor;
  if (version < OLDEST) throw new UnsupportedRuntime(`V8 ${text}: 9.4 (Node 16) is the oldest`);
  const c = new Constants(constants, text);
  if (c.get('SmiShiftSize') !== 31 || c.get('HeapObjectTag') !== 1)
    throw new UnsupportedRuntime(`V8 ${text}: built with compressed pointers (${WRITES_NAMES})`);
  return {
    version,
    bytecodeSizes,
    types: typesOf(c),
    ...objectsOf(c, version),
    code: codeOf(c, version),
    streamHeader: c.type('InstructionStream')
      ? (c.field('InstructionStream', 'instruction_start') ?? (version >= 1200 ? 32 : 16))
      : (c.field('Code', 'instruction_start') ?? (version < 1000 ? 96 : 128)),
    kindMask: c.get('CodeKindFieldMask') ?? 15,
    kindBaseline: c.get('CodeKindBaseline') ?? 11,
    deopt: deoptOf(c, version),
    positionFlags: version >= 1409 ? 3 : version >= 1400 ? 2 : 0,
    hasPeeledLoops: version >= PEELING,
    wasm: wasmOf(c, version),
    frameTypes: c.frameTypes(),
  };
}

function typesOf(c: Constants): V8Layout['types'] {
  return {
    shared: c.needType('SharedFunctionInfo'),
    scopeInfo: c.needType('ScopeInfo'),
    script: c.needType('Script'),
    bytecodeArray: c.needType('BytecodeArray'),
    code: c.needType('Code'),
    instructionStream: c.type('InstructionStream'),
    firstNonString: c.get('FirstNonstringType') ?? 128,
    byteArrays: c.typesEnding('ByteArray'),
    fixedArrays: c.typesEnding('FixedArray'),
  };
}

type Objects = 'functionShared' | 'shared' | 'script' | 'scope' | 'bytecodes';

function objectsOf(c: Constants, version: number): Pick<V8Layout, Objects> {
  const wrapper = c.field('BytecodeArray', 'wrapper');
  return {
    functionShared: c.field('JSFunction', 'shared') ?? (version >= 1200 ? 32 : 24),
    shared: {
      data: c.field('SharedFunctionInfo', 'function_data') ?? 8,
      name: c.field('SharedFunctionInfo', 'name_or_scope_info') ?? (version >= 1300 ? 24 : 16),
      script:
        c.field('SharedFunctionInfo', 'script') ??
        c.field('SharedFunctionInfo', 'script_or_debug_info') ??
        (version >= 1300 ? 40 : 32),
    },
    script: { name: c.field('Script', 'name') ?? 16, source: c.field('Script', 'source') ?? 8 },
    scope: {
      firstVars: c.get('scopeinfo_idx_first_vars') ?? 3,
      localCount: c.get('scopeinfo_idx_ncontextlocals') ?? 2,
      hasPositions: (c.get('scopeinfo_idx_first_vars') ?? 3) >= 5,
    },
    bytecodes: {
      length: 8,
      positions:
        wrapper !== undefined
          ? wrapper + 8
          : (c.field('BytecodeArray', 'source_position_table') ?? (version >= 1204 ? 24 : 32)),
      data: c.field('BytecodeArray', 'data') ?? 54,
    },
  };
}

function codeOf(c: Constants, version: number): V8Layout['code'] {
  const [flags, size] =
    version >= 1300 ? [52, 56] : version >= 1200 ? [48, 52] : version >= 1100 ? [48, 56] : [48, 40];
  return {
    deopt: c.field('Code', 'deoptimization_data') ?? (version >= 1200 ? 8 : 16),
    positions: c.field('Code', 'source_position_table') ?? (version >= 1200 ? 16 : 24),
    start: 40,
    flags: c.field('Code', 'flags') ?? flags!,
    size: c.field('Code', 'instruction_size') ?? size!,
  };
}

function deoptOf(c: Constants, version: number): V8Layout['deopt'] {
  const wrapped = c.get('DeoptimizationDataWrappedSharedFunctionInfoIndex');
  return {
    literals: c.get('DeoptimizationDataLiteralArrayIndex') ?? (version >= 1300 ? 3 : 2),
    shared: wrapped ?? c.get('DeoptimizationDataSharedFunctionInfoIndex') ?? 6,
    isSharedWrapped: wrapped !== undefined,
    positions: c.get('DeoptimizationDataInliningPositionsIndex') ?? (version >= 1300 ? 8 : 7),
  };
}

/** By the oldest version that has them, latest first. Up to 11 frames hold the instance, then its trusted data. */
const WASM: readonly (Omit<V8Layout['wasm'], 'frameType' | 'exported'> & { from: number })[] = [
  { from: 1406, moduleObject: [104, 32], codeSize: 32, codeIndex: 56, hasInlinings: true },
  { from: 1300, moduleObject: [152, 32], codeSize: 32, codeIndex: 56, hasInlinings: true },
  { from: 1200, moduleObject: [160, 32], codeSize: 24, codeIndex: 44, hasInlinings: false },
  { from: 1100, moduleObject: [208], codeSize: 24, codeIndex: 44, hasInlinings: false },
  { from: 0, moduleObject: [208], codeSize: 32, codeIndex: 48, hasInlinings: false },
];

function wasmOf(c: Constants, version: number): V8Layout['wasm'] {
  const { from: _, ...known } = WASM.find(({ from }) => version >= from)!;
  return { frameType: c.get('frametype_WasmFrame') ?? 0, ...known, exported: exportedOf(c, version, known) };
}

/** From V8 13 on it holds the instance's trusted data, as a frame does; in 12 the instance. */
function exportedOf(
  c: Constants,
  version: number,
  { moduleObject }: Pick<V8Layout['wasm'], 'moduleObject'>,
): WasmExported | undefined {
  const type = c.type('WasmExportedFunctionData');
  if (type === undefined || version < 1200) return undefined;
  return version >= 1300
    ? { type, moduleObject: [40, ...moduleObject], index: 48 }
    : { type, moduleObject: [32, ...moduleObject.slice(1)], index: 40 };
}

/** The constants by what they say; ends of names, which say C++ types, change from version to version. */
class Constants {
  readonly #values: ReadonlyMap<string, number>;
  readonly #version: string;
  readonly #fields = new Map<string, number>();
  readonly #types = new Map<string, number>();

  constructor(values: ReadonlyMap<string, number>, version: string) {
    this.#values = values;
    this.#version = version;
    for (const [name, value] of values) {
      const [, kind, first, second] = /^(class|type)_(\w+?)__(\w+?)(?:__\w+)?$/.exec(name) ?? [];
      if (kind === 'class') this.#fields.set(`${first}.${second}`, value);
      else if (kind === 'type') this.#types.set(first!, value);
    }
  }

  get(name: string): number | undefined {
    return this.#values.get(name);
  }

  /** Offset of a field in bytes, if it is plausible. */
  field(type: string, field: string): number | undefined {
    const value = this.#fields.get(`${type}.${field}`);
    return value !== undefined && value >= 0 && value < 256 ? value : undefined;
  }

  type(name: string): number | undefined {
    return this.#types.get(name);
  }

  needType(name: string): number {
    const type = this.#types.get(name);
    if (type === undefined) throw new UnsupportedRuntime(`V8 ${this.#version}: exports no type ${name}`);
    return type;
  }

  typesEnding(end: string): number[] {
    return [...this.#types].filter(([name]) => name.endsWith(end)).map(([, type]) => type);
  }

  frameTypes(): Record<number, string> {
    const prefix = 'frametype_';
    const named = [...this.#values].filter(([name]) => name.startsWith(prefix));
    return Object.fromEntries(named.map(([name, value]) => [value, name.slice(prefix.length)]));
  }
}
