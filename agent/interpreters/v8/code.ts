/**
 * From a program counter in JIT code to the functions that it belongs to. Code begins at a multiple of 64 bytes,
 * behind the header of its heap object; so the object is found by going back from the program counter until a
 * header's type fits. That needs no list of code, and finds also such that no function refers to any more.
 */
import { type Heap, type HeapAddress, PAGE, pointerAt, wordAt } from './heap.ts';
import { findPosition, type Inlining, type Position, readInlinings, UNKNOWN } from './positions.ts';

/** Code of one function, with what was inlined into it. */
export interface Code {
  address: HeapAddress;
  /** Address of the first instruction. */
  start: number;
  size: number;
  isBaseline: boolean;
  isMaglev: boolean;
  /** Optimized: deoptimization data. Baseline: BytecodeArray. */
  deopt: HeapAddress | undefined;
  positions: HeapAddress | undefined;
}

const ALIGNMENT = 32;
const STREAM_CODE = 8;
/** How long code may be: V8 gives up optimizing long before. */
const MAX_BACK = 512 << 10;
/** Words that may be maps of an isolate not known yet, looked at for one program counter. */
const MAX_CANDIDATES = 64;
/** Isolates of a process, such as its worker threads: to V8 10 each has a map of its own for what holds code. */
const MAX_CODE_MAPS = 256;
const CODE_BYTES = 64;
const MAX_TABLE = 4 << 20;
const MAX_INLINED = 64;
const WRAPPED = 8;

/** The code that holds an address; undefined where there is none of a JavaScript function. */
export function findCode(heap: Heap, pc: number): Code | undefined {
  const known = heap.codeStarts.at(pc).map((start) => knownCode(heap, start));
  const code = known.find((one) => one !== undefined && holds(one, pc)) ?? searchCode(heap, pc);
  if (code) heap.codeStarts.note(pc, code.start);
  return code;
}

const holds = ({ start, size }: Code, pc: number): boolean => pc >= start && pc < start + size;

/** What stands where code began before, which may be other code by now, or none. */
function knownCode(heap: Heap, start: number): Code | undefined {
  const map = heap.pointer(start - heap.layout.streamHeader, 0);
  return map !== undefined && heap.codeMaps.has(map) ? codeAt(heap, start, map) : undefined;
}

function searchCode(heap: Heap, pc: number): Code | undefined {
  const { streamHeader } = heap.layout;
  const last = pc - (pc % ALIGNMENT);
  let candidates = 0;
  for (let start = last; start > last - MAX_BACK; start -= ALIGNMENT) {
    const header = start - streamHeader;
    const page = heap.page(header);
    // where the memory for code begins
    if (!page) return undefined;
    const map = pointerAt(page, header % PAGE);
    if (map === undefined || (!heap.codeMaps.has(map) && ++candidates > MAX_CANDIDATES)) continue;
    const code = codeAt(heap, start, map);
    if (code) return holds(code, pc) ? code : undefined;
  }
  return undefined;
}

function codeAt(heap: Heap, start: number, map: HeapAddress): Code | undefined {
  const { layout } = heap;
  const type = layout.types.instructionStream ?? layout.types.code;
  if (!heap.codeMaps.has(map) && heap.readTypeOfMap(map) !== type) return undefined;
  const { code: fields } = layout;
  const stream = start - layout.streamHeader;
  const isSplit = layout.types.instructionStream !== undefined;
  const address = isSplit ? heap.pointer(stream, STREAM_CODE) : stream;
  if (!heap.isA(address, layout.types.code)) return undefined;
  const view = heap.bytes(address, CODE_BYTES);
  if (!view || (isSplit && wordAt(view, fields.start) !== start)) return undefined;
  if (heap.codeMaps.size < MAX_CODE_MAPS) heap.codeMaps.add(map);
  const kind = view.getUint32(fields.flags, true) & layout.kindMask;
  return {
    address,
    start,
    size: view.getUint32(fields.size, true),
    isBaseline: kind === layout.kindBaseline,
    isMaglev: kind === layout.kindBaseline + 1,
    deopt: pointerAt(view, fields.deopt),
    positions: pointerAt(view, fields.positions),
  };
}

/** A function in optimized code and where in it; the innermost first. */
export interface Place {
  shared: HeapAddress | undefined;
  offset: number;
  /** Index of its inlining, -1 for the function that the code was made for. */
  inlining: number;
}

/** What the code says of places in it. */
export interface Places {
  places: Place[];
  inlinings: readonly Inlining[];
}

/** Expands what was inlined at an address of optimized code. */
export function findPlaces(heap: Heap, code: Code, pc: number): Places {
  const { deopt: indices, positionFlags } = heap.layout;
  const table = heap.byteArray(code.positions, MAX_TABLE);
  let position: Position = table ? findPosition(table, pc - code.start, positionFlags) : UNKNOWN;
  const bytes =
    position.inlining >= 0
      ? heap.byteArray(heap.element(code.deopt, indices.positions), MAX_TABLE)
      : undefined;
  const inlinings = bytes ? readInlinings(bytes, position.inlining + 1) : [];
  const literals = bytes && heap.element(code.deopt, indices.literals);
  const places: Place[] = [];
  while (position.inlining >= 0 && places.length < MAX_INLINED) {
    const inlining = inlinings[position.inlining];
    // a caller was always entered into the list before what was inlined into it
    if (!inlining || inlining.caller.inlining >= position.inlining) break;
    const shared =
      inlining.literal < 0 ? outerFunction(heap, code) : heap.element(literals, inlining.literal);
    places.push({ shared, ...position });
    position = inlining.caller;
  }
  const offset = position.inlining < 0 ? position.offset : -1;
  places.push({ shared: outerFunction(heap, code), offset, inlining: -1 });
  return { places, inlinings };
}

function outerFunction(heap: Heap, code: Code): HeapAddress | undefined {
  const { shared, isSharedWrapped } = heap.layout.deopt;
  const object = heap.element(code.deopt, shared);
  return isSharedWrapped && object !== undefined ? heap.pointer(object, WRAPPED) : object;
}
