/**
 * Reads V8's objects out of a live process. The program runs on meanwhile and its collector moves objects: each
 * object's type is checked before it is believed, every length has a cap.
 */
import type { ProcessMemory } from '../contract.ts';
import { CodeStarts } from './code-starts.ts';
import type { V8Layout } from './layout.ts';

/** Address of an object, without the tag. */
export type HeapAddress = number;

const MAX_ADDRESS = 2 ** 48;
const MAP_INSTANCE_TYPE = 12;
const ARRAY_LENGTH = 8;
const ARRAY_DATA = 16;
const MAX_KNOWN_MAPS = 256;
export const PAGE = 4096;
const PAGES = 32;

export class Heap {
  readonly layout: V8Layout;
  #memory: ProcessMemory;
  /** Pages that pointers were read from lately, by the lower bits of their numbers. */
  readonly #pageNumbers = new Float64Array(PAGES).fill(-1);
  readonly #pages: (DataView | undefined)[] = new Array(PAGES).fill(undefined);
  /** Types by address of their maps: those of V8's own types stay where they are. */
  readonly #types = new Map<number, number>();

  /** The maps of objects that hold code, as they were found. */
  readonly codeMaps = new Set<HeapAddress>();
  readonly codeStarts = new CodeStarts();

  constructor(memory: ProcessMemory, layout: V8Layout) {
    this.#memory = memory;
    this.layout = layout;
  }

  /** The process's memory is opened anew for each turn of the event loop. */
  set memory(memory: ProcessMemory) {
    if (memory === this.#memory) return;
    this.#memory = memory;
    this.#pageNumbers.fill(-1);
    this.#pages.fill(undefined);
  }

  /** Up to `length` bytes: behind an object the memory may end. */
  bytesUpTo(address: number, length: number): DataView {
    const bytes = address > 0 && address + length < MAX_ADDRESS && this.#memory.read(address, length);
    return bytes
      ? new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
      : new DataView(new ArrayBuffer(0));
  }

  /** Exactly `length` bytes; undefined where they can't be read. */
  bytes(address: number, length: number): DataView | undefined {
    if (!(address > 0 && address + length < MAX_ADDRESS)) return undefined;
    const bytes = this.#memory.read(address, length);
    return bytes?.length === length ? new DataView(bytes.buffer, bytes.byteOffset, length) : undefined;
  }

  /** An untagged word, such as an address of code or memory of C++. */
  word(address: number): number | undefined {
    const view = this.bytes(address, 8);
    return view && wordAt(view, 0);
  }

  /** The object that a field refers to. */
  pointer(object: HeapAddress, offset: number): HeapAddress | undefined {
    const at = object + offset;
    const view = this.page(at);
    // an object's fields are aligned; what is not is not an object
    return view && at % 8 === 0 ? pointerAt(view, at % PAGE) : undefined;
  }

  /** The page that holds an address. */
  page(address: number): DataView | undefined {
    const number = Math.floor(address / PAGE);
    const slot = number % PAGES;
    if (this.#pageNumbers[slot] === number) return this.#pages[slot];
    const view = this.bytes(number * PAGE, PAGE);
    this.#pageNumbers[slot] = number;
    this.#pages[slot] = view;
    return view;
  }

  /**
   * Where an object is. While the collector moves objects, the old copy of one begins with the address of the new one,
   * untagged, in place of its map; references to it are updated later.
   */
  current(object: HeapAddress | undefined): HeapAddress | undefined {
    const view = object === undefined || object % 8 !== 0 ? undefined : this.page(object);
    if (!view || (view.getUint32(object! % PAGE, true) & 3) !== 0) return object;
    const moved = wordAt(view, object! % PAGE);
    return moved > 0 && moved < MAX_ADDRESS ? moved : object;
  }

  typeOf(object: HeapAddress): number | undefined {
    const map = this.pointer(object, 0);
    return map === undefined ? undefined : this.typeOfMap(map);
  }

  /** The instance type that a map describes. */
  typeOfMap(map: HeapAddress): number | undefined {
    const known = this.#types.get(map);
    if (known !== undefined) return known;
    const type = this.readTypeOfMap(map);
    if (type !== undefined && this.#types.size < MAX_KNOWN_MAPS) this.#types.set(map, type);
    return type;
  }

  /** Of what may be no map; it is not kept. */
  readTypeOfMap(map: HeapAddress): number | undefined {
    const at = map + MAP_INSTANCE_TYPE;
    return at % 2 === 0 ? this.page(at)?.getUint16(at % PAGE, true) : undefined;
  }

  isA(object: HeapAddress | undefined, ...types: readonly number[]): object is HeapAddress {
    const type = object === undefined ? undefined : this.typeOf(object);
    return type !== undefined && types.includes(type);
  }

  /** Content of a byte array, undefined where there is none or it is longer than `maxBytes`. */
  byteArray(object: HeapAddress | undefined, maxBytes: number): Uint8Array | undefined {
    if (!this.isA(object, ...this.layout.types.byteArrays)) return undefined;
    const length = this.arrayLength(object);
    if (length === undefined || length > maxBytes) return undefined;
    const view = this.bytes(object + ARRAY_DATA, length);
    return view && new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
  }

  /** The object at an index of an array of objects; weak references count. */
  element(array: HeapAddress | undefined, index: number): HeapAddress | undefined {
    if (!this.isA(array, ...this.layout.types.fixedArrays)) return undefined;
    const length = this.arrayLength(array);
    if (length === undefined || index < 0 || index >= length) return undefined;
    return this.pointer(array, ARRAY_DATA + index * 8);
  }

  /** Small integers from V8's arrays have their value in the upper half; 14 and later may have a plain length. */
  arrayLength(array: HeapAddress): number | undefined {
    const view = this.bytes(array + ARRAY_LENGTH, 8);
    return view && (view.getUint32(4, true) || view.getUint32(0, true));
  }
}

export const wordAt = (view: DataView, at: number): number =>
  view.getUint32(at + 4, true) * 2 ** 32 + view.getUint32(at, true);

/** A tagged pointer, weak (3) or strong (1). */
export function pointerAt(view: DataView, at: number): HeapAddress | undefined {
  const low = view.getUint32(at, true);
  const word = wordAt(view, at);
  return low & 1 && word < MAX_ADDRESS ? word - (low & 3) : undefined;
}

/** A small integer. */
export function smiAt(view: DataView, at: number): number | undefined {
  return view.getUint32(at, true) === 0 ? view.getInt32(at + 4, true) : undefined;
}
