/** Names and places of JavaScript functions: SharedFunctionInfo, ScopeInfo, Script. */
import { LRUCache } from 'lru-cache';
import type { RuntimeFrame } from '../contract.ts';
import { cookieOf32Bits } from '../cookie.ts';
import { offsetOfBytecode } from './bytecodes.ts';
import type { Code } from './code.ts';
import { type Heap, type HeapAddress, pointerAt, smiAt, wordAt } from './heap.ts';
import { type LineIndex, Lines, type Place, UNKNOWN_PLACE } from './lines.ts';
import {
  findBytecodeIndex,
  findPosition,
  type Position,
  type PositionEntry,
  readPositions,
} from './positions.ts';
import { locateText, readText, type TextSpan } from './strings.ts';

export interface JsFunction {
  address: HeapAddress;
  name: string;
  script: Script | undefined;
  /** Offset in the script, -1 if unknown. */
  start: number;
  startPlace: Place;
  data: HeapAddress | undefined;
}

/** What was read of a function, and what tells it from its successors at the address. */
interface Known {
  nameWord: number;
  script: Script | undefined;
  name: string;
  start: number;
  startPlace: Place;
}

interface Script {
  address: HeapAddress;
  file: string;
  /** Undefined where the source can't be read or is too long. */
  lines: LineIndex | undefined;
}

interface KnownScript {
  name: HeapAddress | undefined;
  source: HeapAddress | undefined;
  script: Script;
}

/** Processes that run the same script share what is known of it. */
const lines = new Lines();

const SHARED_BYTES = 64;
const MAX_NAME_CHARS = 1024;
const MAX_FILE_CHARS = 4096;
const MAX_SOURCE_CHARS = 16 << 20;
const MAX_POSITION_TABLE = 4 << 20;
/** Bytes of a table that is kept as a list. */
const MAX_ENTRIES = 64 << 10;
const MAX_BYTECODES = 4 << 20;
/** Slots behind a scope's variables that are searched for the function's name. */
const NAME_SLOTS = 16;
const SCOPE_SLOTS_AT = 8;
/** Longer lists of variables are kept in a hash table of their own. */
const MAX_INLINE_NAMES = 75;
const BASELINE_DATA = 16;
const MAX_SCRIPTS = 256;
/** A module of WebAssembly. JavaScript has a function for each that it exports, which V8 names by its index alone. */
const WASM = 'wasm://';
/** As the frames of compiled code are called that lead there. */
const FROM_JS = '[v8: JsToWasm]';
const MAX_FUNCTIONS = 4096;

/** A bound on size, not on entries: with `max` each process would take room for all of them at once, 150 KB. */
const makeCache = <T extends object>(count: number): LRUCache<HeapAddress, T> =>
  new LRUCache({ maxSize: count, sizeCalculation: () => 1 });

/** Reads functions of one process. */
export class Functions {
  readonly #heap: Heap;
  /** By address of the Script; its name and source move more often than itself. */
  readonly #scripts = makeCache<KnownScript>(MAX_SCRIPTS);
  readonly #known = makeCache<Known>(MAX_FUNCTIONS);

  constructor(heap: Heap) {
    this.#heap = heap;
  }

  /** Undefined where no SharedFunctionInfo stands at the address; `cookie` 0: any will do. */
  read(address: HeapAddress | undefined, cookie = 0): JsFunction | 'replaced' | undefined {
    const { layout } = this.#heap;
    const view = address === undefined ? undefined : this.#heap.bytes(address, SHARED_BYTES);
    if (!view || address === undefined) return undefined;
    let known = this.#known.get(address);
    const nameWord = wordAt(view, layout.shared.name);
    if (cookie !== 0 && functionCookie(view, layout.shared) !== cookie) return 'replaced';
    const script = this.#script(pointerAt(view, layout.shared.script));
    if (known?.nameWord !== nameWord || known.script !== script) {
      if (!this.#heap.isA(address, layout.types.shared)) return undefined;
      known = this.#describe(nameWord, pointerAt(view, layout.shared.name), script);
      this.#known.set(address, known);
    }
    // property by property: copies by spreading would have a hidden class each
    const { name, start, startPlace } = known;
    return { address, name, start, script, startPlace, data: pointerAt(view, layout.shared.data) };
  }

  #describe(nameWord: number, object: HeapAddress | undefined, script: Script | undefined): Known {
    if (script?.file.startsWith(WASM)) {
      return { nameWord, script, name: FROM_JS, start: -1, startPlace: UNKNOWN_PLACE };
    }
    const { name, start } = this.#name(object);
    return { nameWord, script, name, start, startPlace: this.#placeOf(script, start) };
  }

  /** A name or, where the function has one, its ScopeInfo. */
  #name(reference: HeapAddress | undefined): { name: string; start: number } {
    const object = this.#heap.current(reference);
    const { types, scope } = this.#heap.layout;
    const text = readText(this.#heap, object, MAX_NAME_CHARS);
    if (text !== undefined) return { name: text, start: -1 };
    if (!this.#heap.isA(object, types.scopeInfo)) return { name: '', start: -1 };
    const slot = (index: number) => this.#heap.bytes(object + SCOPE_SLOTS_AT + index * 8, 8);
    const count = slot(scope.localCount);
    const locals = (count && smiAt(count, 0)) ?? 0;
    if (locals < 0 || locals > 1 << 16) return { name: '', start: -1 };
    const first = scope.firstVars + (locals < MAX_INLINE_NAMES ? 2 * locals : locals + 1);
    const found = this.#firstName(this.#heap.bytesUpTo(object + SCOPE_SLOTS_AT + first * 8, NAME_SLOTS * 8));
    const start = scope.hasPositions ? slot(3) : undefined;
    return { name: found.name, start: (start && smiAt(start, 0)) ?? found.start };
  }

  /** The first text among the slots; older versions keep start and end behind it. */
  #firstName(slots: DataView): { name: string; start: number } {
    let name = '';
    const count = Math.floor(slots.byteLength / 8);
    for (let i = 0; i < count; i++) {
      if (name === '') name = readText(this.#heap, pointerAt(slots, i * 8), MAX_NAME_CHARS) ?? '';
      const [start, end] = [smiAt(slots, i * 8), i + 1 < count ? smiAt(slots, i * 8 + 8) : undefined];
      if (i > 0 && start !== undefined && end !== undefined && start >= 0 && start < end)
        return { name, start };
    }
    return { name, start: -1 };
  }

  #script(reference: HeapAddress | undefined): Script | undefined {
    const object = this.#heap.current(reference);
    const { types, script: fields } = this.#heap.layout;
    if (!this.#heap.isA(object, types.script)) return undefined;
    const name = this.#heap.pointer(object, fields.name);
    const source = this.#heap.pointer(object, fields.source);
    const known = this.#scripts.get(object);
    if (known && known.name === name && known.source === source) return known.script;
    const file = readText(this.#heap, name, MAX_FILE_CHARS);
    const span = locateText(this.#heap, source, MAX_SOURCE_CHARS);
    const index = span && lines.of(this.#heap, file ?? '', span);
    if (index) {
      const script = { address: object, file: file ?? '', lines: index };
      this.#scripts.set(object, { name, source, script });
      return script;
    }
    // the collector has moved the source just now, and its lines are still those that were read before
    const isSame = known !== undefined && (file === undefined || file === known.script.file);
    return isSame ? known.script : { address: object, file: file ?? '', lines: undefined };
  }

  #sourceOf({ address }: Script): TextSpan | undefined {
    const source = this.#heap.pointer(address, this.#heap.layout.script.source);
    return locateText(this.#heap, source, MAX_SOURCE_CHARS);
  }

  /** The frame of a function at an offset of its script; without one, at its start. */
  frame(func: JsFunction, offset: number): RuntimeFrame {
    const place = offset >= 0 ? this.#placeOf(func.script, offset) : func.startPlace;
    return {
      name: func.name === '' ? '<anonymous>' : func.name,
      file: fileOf(func.script),
      line: place.line,
      column: place.column,
      startLine: func.startPlace.line,
      startColumn: func.startPlace.column,
      isPlaceless: isBuiltin(func),
    };
  }

  #placeOf(script: Script | undefined, offset: number): Place {
    if (!script?.lines || offset < 0) return UNKNOWN_PLACE;
    return script.lines.placeOf(offset, this.#heap, () => this.#sourceOf(script));
  }

  /** Position of a bytecode, by its offset as V8 keeps it: from the tagged pointer to the array. */
  bytecodePosition(func: JsFunction, offset: number): Position | undefined {
    const array = this.bytecodesOf(func);
    if (!array) return undefined;
    const index = offset - (this.#heap.layout.bytecodes.data - 1);
    return index >= 0 && index < array.length ? this.#positionIn(array.address, index) : undefined;
  }

  /** Position of an address in a function's baseline code. */
  baselinePosition(func: JsFunction, code: Code, pc: number): Position | undefined {
    const { bytecodeSizes, bytecodes: fields } = this.#heap.layout;
    const array = this.bytecodesOf(func);
    const table = this.#heap.byteArray(code.positions, MAX_POSITION_TABLE);
    if (!bytecodeSizes || !array || !table) return undefined;
    const index = findBytecodeIndex(table, pc - code.start);
    const view = this.#heap.bytes(array.address + fields.data, array.length);
    if (index < 0 || !view) return undefined;
    const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
    return this.#positionIn(array.address, offsetOfBytecode(bytes, bytecodeSizes, index));
  }

  /** Position of a bytecode by its offset in the array. */
  #positionIn(array: HeapAddress, index: number): Position | undefined {
    const { bytecodes, positionFlags } = this.#heap.layout;
    const table = this.#heap.byteArray(this.#heap.pointer(array, bytecodes.positions), MAX_POSITION_TABLE);
    return table && findPosition(table, index, positionFlags);
  }

  /** The positions of a function's bytecodes. */
  positionsOf(func: JsFunction): PositionEntry[] {
    const { bytecodes, positionFlags } = this.#heap.layout;
    const array = this.bytecodesOf(func);
    const object = array && this.#heap.pointer(array.address, bytecodes.positions);
    const table = this.#heap.byteArray(object, MAX_ENTRIES);
    return table ? readPositions(table, positionFlags) : [];
  }

  /** A function's bytecode, also below its baseline code. */
  bytecodesOf({ data }: JsFunction): { address: HeapAddress; length: number } | undefined {
    const { types, code, bytecodes, version } = this.#heap.layout;
    let object = data;
    // V8 9: an object of its own refers to both
    const isIndirect = version < 1000 && !this.#heap.isA(object, types.code, types.bytecodeArray);
    if (isIndirect && object !== undefined) object = this.#heap.pointer(object, BASELINE_DATA);
    if (this.#heap.isA(object, types.code)) object = this.#heap.pointer(object, code.deopt);
    if (!this.#heap.isA(object, types.bytecodeArray)) return undefined;
    const view = this.#heap.bytes(object + bytecodes.length, 8);
    const length = view && (view.getUint32(4, true) || view.getUint32(0, true));
    return length && length <= MAX_BYTECODES ? { address: object, length } : undefined;
  }
}

/** Of V8 itself: a number stands in place of its code. */
const isBuiltin = ({ script, data }: JsFunction): boolean => script === undefined && data === undefined;

const fileOf = (script: Script | undefined): string => {
  const file = script?.file ?? '';
  if (!file.startsWith('file://')) return file;
  try {
    return decodeURIComponent(file.slice('file://'.length));
  } catch {
    return file;
  }
};

/** Must equal v8_cookie() of ebpf/v8/unwind.h. */
const functionCookie = (view: DataView, { name, script }: { name: number; script: number }): number =>
  cookieOf32Bits([view.getBigUint64(name, true), view.getBigUint64(script, true)]);
