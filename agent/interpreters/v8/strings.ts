/** V8's strings: sequential, external, sliced, cons and thin ones, of one or two bytes a character. */
import type { Heap, HeapAddress } from './heap.ts';

const LENGTH = 12;
const CHARS = 16;
/** Cons: first; thin: actual; sliced: parent; external: resource. */
const FIRST = 16;
const SECOND = 24;
const EXTERNAL_DATA = 24;
const REPRESENTATION = 7;
const SEQUENTIAL = 0;
const CONS = 1;
const EXTERNAL = 2;
const SLICED = 3;
const THIN = 5;
const ONE_BYTE = 8;
/** Through how many strings one may refer to another. */
const MAX_HOPS = 64;
/** Of which one string may be made. */
const MAX_PIECES = 16;

/** Characters as they stand in memory. */
export interface Characters {
  bytes: Uint8Array;
  isTwoByte: boolean;
}

/** Where the characters of a string stand. */
export interface TextSpan {
  data: number;
  /** Characters. */
  length: number;
  isTwoByte: boolean;
}

/** Undefined where it is not a string, its halves are not joined, or it has more than `maxChars`. */
export function locateText(
  heap: Heap,
  string: HeapAddress | undefined,
  maxChars: number,
): TextSpan | undefined {
  const found = follow(heap, string, maxChars);
  return found && 'data' in found ? found : undefined;
}

/** Undefined where it is not a string, can't be read or has more than `maxChars`. */
export function readCharacters(
  heap: Heap,
  string: HeapAddress | undefined,
  maxChars: number,
): Characters | undefined {
  const found = follow(heap, string, maxChars);
  if (!found) return undefined;
  return 'data' in found ? readSpan(heap, found) : joinCons(heap, found.cons, maxChars);
}

function follow(
  heap: Heap,
  string: HeapAddress | undefined,
  maxChars: number,
): TextSpan | { cons: HeapAddress } | undefined {
  let at = string;
  let start = 0;
  let length: number | undefined;
  for (let hop = 0; hop < MAX_HOPS && at !== undefined; hop++) {
    at = heap.current(at)!;
    const type = heap.typeOf(at);
    if (type === undefined || type >= heap.layout.types.firstNonString) return undefined;
    length ??= heap.bytes(at + LENGTH, 4)?.getUint32(0, true);
    if (length === undefined || length > maxChars) return undefined;
    const isTwoByte = (type & ONE_BYTE) === 0;
    const width = isTwoByte ? 2 : 1;
    switch (type & REPRESENTATION) {
      case SEQUENTIAL:
        return { data: at + CHARS + start * width, length, isTwoByte };
      case EXTERNAL: {
        const data = heap.word(at + EXTERNAL_DATA);
        return data === undefined ? undefined : { data: data + start * width, length, isTwoByte };
      }
      case SLICED:
        start += heap.bytes(at + SECOND, 8)?.getInt32(4, true) ?? 0;
        at = heap.pointer(at, FIRST);
        break;
      case CONS:
        // V8 flattens what it compiles: the second half is empty then
        if (heap.bytes((heap.pointer(at, SECOND) ?? 0) + LENGTH, 4)?.getUint32(0, true) !== 0)
          return { cons: at };
        at = heap.pointer(at, FIRST);
        break;
      case THIN:
        at = heap.pointer(at, FIRST);
        break;
      default:
        return undefined;
    }
  }
  return undefined;
}

/** Halves that are not joined yet: names such as `get x` that nobody has looked at, places of WebAssembly modules. */
function joinCons(heap: Heap, cons: HeapAddress, maxChars: number): Characters | undefined {
  const left: (HeapAddress | undefined)[] = [cons];
  let text = '';
  for (let pieces = 0; left.length > 0; pieces++) {
    const found = pieces < MAX_PIECES ? follow(heap, left.pop(), maxChars) : undefined;
    const characters = found && 'data' in found ? readSpan(heap, found) : undefined;
    if (characters) text += toText(characters);
    else if (found && 'cons' in found)
      left.push(heap.pointer(found.cons, SECOND), heap.pointer(found.cons, FIRST));
    else return undefined;
  }
  return { bytes: Buffer.from(text, 'utf16le'), isTwoByte: true };
}

export function readSpan(heap: Heap, { data, length, isTwoByte }: TextSpan): Characters | undefined {
  if (length === 0) return { bytes: new Uint8Array(0), isTwoByte };
  const view = heap.bytes(data, length * (isTwoByte ? 2 : 1));
  return view && { bytes: new Uint8Array(view.buffer, view.byteOffset, view.byteLength), isTwoByte };
}

export const toText = ({ bytes, isTwoByte }: Characters): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString(isTwoByte ? 'utf16le' : 'latin1');

export function readText(heap: Heap, string: HeapAddress | undefined, maxChars: number): string | undefined {
  const characters = readCharacters(heap, string, maxChars);
  return characters && toText(characters);
}
