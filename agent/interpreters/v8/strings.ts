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

/** Characters as they stand in memory. */
export interface Characters {
  bytes: Uint8Array;
  isTwoByte: boolean;
}

/** Undefined where it is no string, can't be read or has more than `maxChars`. */
export function readCharacters(
  heap: Heap,
  string: HeapAddress | undefined,
  maxChars: number,
  isHalf = false,
): Characters | undefined {
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
    switch (type & REPRESENTATION) {
      case SEQUENTIAL:
        return readAt(heap, at + CHARS, { start, length, isTwoByte });
      case EXTERNAL: {
        const data = heap.word(at + EXTERNAL_DATA);
        return data === undefined ? undefined : readAt(heap, data, { start, length, isTwoByte });
      }
      case SLICED:
        start += heap.bytes(at + SECOND, 8)?.getInt32(4, true) ?? 0;
        at = heap.pointer(at, FIRST);
        break;
      case CONS:
        // V8 flattens what it compiles: the second half is empty then
        if (heap.bytes((heap.pointer(at, SECOND) ?? 0) + LENGTH, 4)?.getUint32(0, true) !== 0)
          return isHalf ? undefined : joinCons(heap, at, maxChars);
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

/** Halves that are not joined yet: names such as `get x` that nobody has looked at. One level is read. */
function joinCons(heap: Heap, cons: HeapAddress, maxChars: number): Characters | undefined {
  const first = readCharacters(heap, heap.pointer(cons, FIRST), maxChars, true);
  const second = readCharacters(heap, heap.pointer(cons, SECOND), maxChars, true);
  if (!first || !second) return undefined;
  const text = toText(first) + toText(second);
  return { bytes: Buffer.from(text, 'utf16le'), isTwoByte: true };
}

function readAt(
  heap: Heap,
  data: number,
  { start, length, isTwoByte }: { start: number; length: number; isTwoByte: boolean },
): Characters | undefined {
  if (length === 0) return { bytes: new Uint8Array(0), isTwoByte };
  const width = isTwoByte ? 2 : 1;
  const view = heap.bytes(data + start * width, length * width);
  return view && { bytes: new Uint8Array(view.buffer, view.byteOffset, view.byteLength), isTwoByte };
}

export const toText = ({ bytes, isTwoByte }: Characters): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString(isTwoByte ? 'utf16le' : 'latin1');

export function readText(heap: Heap, string: HeapAddress | undefined, maxChars: number): string | undefined {
  const characters = readCharacters(heap, string, maxChars);
  return characters && toText(characters);
}

/** Positions of the line feeds, in characters. */
export function findLineEnds({ bytes, isTwoByte }: Characters): Uint32Array {
  const width = isTwoByte ? 2 : 1;
  const ends: number[] = [];
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1)) {
    if (!isTwoByte || (at % 2 === 0 && bytes[at + 1] === 0)) ends.push(at / width);
  }
  return Uint32Array.from(ends);
}
