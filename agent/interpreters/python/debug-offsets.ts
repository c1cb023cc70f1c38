/**
 * `_Py_DebugOffsets`: from 3.13 on CPython publishes at the start of _PyRuntime where its structs keep what
 * debuggers and profilers need. All numbers are 64 bits wide and follow each other in groups, one a struct; a
 * newer version may add numbers inside any group, so the order is known by minor version. It is initialised at
 * compile time and can be read from the file. Source: Include/internal/pycore_debug_offsets.h of 3.13, 3.14, 3.15
 * (in 3.13 in pycore_runtime.h).
 */
import { Cursor } from '../../../common/base/cursor.ts';
import { LATER_LAYOUT, type PythonLayout } from './layout.ts';

/** Bytes that hold the numbers of every version known, with some room. */
export const DEBUG_OFFSETS_BYTES = 1024;

export interface DebugOffsets {
  /** PY_VERSION_HEX: 0x030d05f0 is 3.13.5 final. */
  versionHex: number;
  isFreeThreaded: boolean;
  /** The numbers of the groups were found plausible and this minor version is one whose order is known. */
  layout: PythonLayout;
  /** Newer than the newest order known here. */
  isGuess: boolean;
}

/** Why there are none. */
export class NoDebugOffsets extends Error {
  override readonly name = 'NoDebugOffsets';
}

const COOKIE = 'xdebugpy';
const NEWEST_KNOWN = 15;
/** An interpreter of a free-threaded build is the largest. */
const MAX_STRUCT_BYTES = 1 << 20;

type Groups = readonly (readonly [group: string, fields: string])[];

const INTERPRETER_3_13 =
  'size id next threads_head gc imports_modules sysdict builtins ceval_gil gil_runtime_state gil_enabled gil_locked gil_holder';
const OBJECTS_3_13: Groups = [
  ['pyobject', 'size ob_type'],
  ['type_object', 'size tp_name tp_repr tp_flags'],
  ['tuple_object', 'size ob_item ob_size'],
];
const CONTAINERS: Groups = [
  ['list_object', 'size ob_item ob_size'],
  ['dict_object', 'size ma_keys ma_values'],
  ['float_object', 'size ob_fval'],
  ['long_object', 'size lv_tag ob_digit'],
];
const CODE_3_13 =
  'size filename name qualname linetable firstlineno argcount localsplusnames localspluskinds code_adaptive';

const GROUPS_3_13: Groups = [
  ['runtime_state', 'size finalizing interpreters_head'],
  ['interpreter_state', INTERPRETER_3_13],
  ['thread_state', 'size prev next interp current_frame thread_id native_thread_id datastack_chunk status'],
  ['interpreter_frame', 'size previous executable instr_ptr localsplus owner'],
  ['code_object', CODE_3_13],
  ...OBJECTS_3_13,
  ...CONTAINERS,
  ['bytes_object', 'size ob_size ob_sval'],
  ['unicode_object', 'size state length asciiobject_size'],
];

const WITH_SETS: Groups = [
  ['list_object', 'size ob_item ob_size'],
  ['set_object', 'size used table mask'],
  ...CONTAINERS.slice(1),
];
const INTERPRETER_3_14 = `${INTERPRETER_3_13.replace('threads_head', 'threads_head threads_main')} code_object_generation tlbc_generation`;
const FRAME_3_14 = 'size previous executable instr_ptr localsplus owner stackpointer tlbc_index';

const GROUPS_3_14: Groups = [
  ['runtime_state', 'size finalizing interpreters_head'],
  ['interpreter_state', INTERPRETER_3_14],
  ['thread_state', 'size prev next interp current_frame thread_id native_thread_id datastack_chunk status'],
  ['interpreter_frame', FRAME_3_14],
  ['code_object', `${CODE_3_13} co_tlbc`],
  ...OBJECTS_3_13,
  ...WITH_SETS,
  ['bytes_object', 'size ob_size ob_sval'],
  ['unicode_object', 'size state length asciiobject_size'],
];

const GROUPS_3_15: Groups = [
  ['runtime_state', 'size finalizing interpreters_head'],
  ['interpreter_state', INTERPRETER_3_14],
  [
    'thread_state',
    'size prev next interp current_frame base_frame last_profiled_frame last_profiled_frame_seq thread_id native_thread_id datastack_chunk status holds_gil gil_requested current_exception exc_state',
  ],
  ['err_stackitem', 'exc_value'],
  ['interpreter_frame', FRAME_3_14],
  ['code_object', `${CODE_3_13} co_tlbc`],
  ['pyobject', 'size ob_type'],
  ['type_object', 'size tp_name tp_repr tp_flags tp_basicsize tp_dictoffset'],
  ['heap_type_object', 'size ht_cached_keys'],
  ['tuple_object', 'size ob_item ob_size'],
  ...WITH_SETS,
  ['bytes_object', 'size ob_size ob_sval'],
  ['unicode_object', 'size state length asciiobject_size compactunicodeobject_size'],
];

const groupsOf = (minor: number): Groups =>
  minor <= 13 ? GROUPS_3_13 : minor === 14 ? GROUPS_3_14 : GROUPS_3_15;

/** Reads the offsets from the first bytes of _PyRuntime. Throws {@link NoDebugOffsets}, or OutOfBounds. */
export function readDebugOffsets(bytes: Uint8Array): DebugOffsets {
  const cursor = new Cursor(bytes);
  let cookie = '';
  for (let i = 0; i < COOKIE.length; i++) cookie += String.fromCharCode(cursor.u8());
  if (cookie !== COOKIE) throw new NoDebugOffsets(`_PyRuntime does not begin with "${COOKIE}"`);
  const versionHex = cursor.u64();
  const minor = (versionHex >>> 16) & 0xff;
  if (versionHex >>> 24 !== 3 || minor < 13)
    throw new NoDebugOffsets(`version 0x${versionHex.toString(16)} is not 3.13 or later`);
  const isFreeThreaded = cursor.u64() !== 0;
  const fields = new Map<string, number>();
  for (const [group, names] of groupsOf(minor)) {
    for (const name of names.split(' ')) fields.set(`${group}.${name}`, cursor.u64());
  }
  const layout = toLayout(fields, minor, isFreeThreaded);
  return { versionHex, isFreeThreaded, layout, isGuess: minor > NEWEST_KNOWN };
}

function toLayout(fields: ReadonlyMap<string, number>, minor: number, isFreeThreaded: boolean): PythonLayout {
  /** An offset inside the struct of its group, whose size bounds it. */
  const at = (group: string, field: string, width = 8): number => {
    const offset = fields.get(`${group}.${field}`) ?? Number.NaN;
    const size = fields.get(`${group}.size`) ?? 0;
    if (!(offset >= 0 && offset + width <= size && size <= MAX_STRUCT_BYTES))
      throw new NoDebugOffsets(`${group}.${field} is ${offset}, in a struct of ${size} bytes`);
    return offset;
  };
  const asciiData = at('unicode_object', 'asciiobject_size', 0);
  // co_flags stands right before co_argcount: co_flags, (3.12 on) co_argcount
  const codeArgcount = at('code_object', 'argcount', 4);
  return {
    ...LATER_LAYOUT,
    threadFrame: at('thread_state', 'current_frame'),
    threadId: at('thread_state', 'thread_id'),
    threadNext: at('thread_state', 'next'),
    threadBaseFrame: minor >= 15 ? at('thread_state', 'base_frame') : 0,
    runtimeInterpreters: at('runtime_state', 'interpreters_head'),
    interpreterNext: at('interpreter_state', 'next'),
    interpreterThreads: at('interpreter_state', 'threads_head'),
    framePrevious: at('interpreter_frame', 'previous'),
    frameCode: at('interpreter_frame', 'executable'),
    frameInstruction: at('interpreter_frame', 'instr_ptr'),
    frameBoundary: at('interpreter_frame', 'owner', 1),
    codeTagMask: minor >= 14 ? 3 : 0,
    objectType: at('pyobject', 'ob_type'),
    codeArgcount,
    codeFlags: codeArgcount - 4,
    codeFirstLine: at('code_object', 'firstlineno', 4),
    codeFilename: at('code_object', 'filename'),
    codeName: at('code_object', 'name'),
    codeQualname: at('code_object', 'qualname'),
    codeLineTable: at('code_object', 'linetable'),
    codeStart: at('code_object', 'code_adaptive', 0),
    codeThreadLocal: isFreeThreaded && minor >= 14 ? at('code_object', 'co_tlbc') : 0,
    frameThreadLocalIndex: isFreeThreaded && minor >= 14 ? at('interpreter_frame', 'tlbc_index', 4) : 0,
    strings: {
      length: at('unicode_object', 'length'),
      state: at('unicode_object', 'state', 4),
      asciiData,
      // two more pointer-sized members: the UTF-8 form and its length
      compactData: asciiData + 16,
      // a free-threaded build keeps `interned` in a byte of its own (3.14)
      kindShift: isFreeThreaded && minor >= 14 ? 8 : 2,
    },
    bytesSize: at('bytes_object', 'ob_size'),
    bytesData: at('bytes_object', 'ob_sval', 0),
  };
}
