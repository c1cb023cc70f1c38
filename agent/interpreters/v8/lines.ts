/**
 * From offsets in a script's source to lines and columns. Of a usual script all ends of lines are kept. A bundle has
 * megabytes of source and a hundred thousand lines: of that one number of lines is kept for each block, and the block
 * that an offset lies in is read from the process again.
 */
import { LRUCache } from 'lru-cache';
import type { Heap } from './heap.ts';
import { readSpan, type TextSpan } from './strings.ts';

/** From 1; 0 where the source can't be read. */
export interface Place {
  line: number;
  column: number;
}

export const UNKNOWN_PLACE: Place = { line: 0, column: 0 };

export interface LineIndex {
  readonly byteLength: number;
  /** `source` finds the text where it stands now; it is only asked for where that must be read again. */
  placeOf(offset: number, heap: Heap, source: () => TextSpan | undefined): Place;
}

const BLOCK = 2048;
const CHUNK = BLOCK * 32;
/** Characters of a script whose ends of lines are all kept. */
const MAX_WHOLE = 256 << 10;
const LINE_FEED = 10;
const SAMPLES = 8;
const SAMPLE_CHARS = 256;
const MAX_SHARED_BYTES = 4 << 20;

/**
 * Processes that run the same script share its lines. The same script: file, length, and samples from all over the
 * text; an edit that leaves all of them as they are can at most shift lines between two samples.
 */
export class Lines {
  readonly #shared = new LRUCache<string, LineIndex>({
    maxSize: MAX_SHARED_BYTES,
    sizeCalculation: ({ byteLength }) => byteLength + 256,
  });

  /** Undefined where the source can't be read. */
  of(heap: Heap, file: string, source: TextSpan): LineIndex | undefined {
    const hash = sample(heap, source);
    if (hash === undefined) return undefined;
    const key = `${file}\0${source.length}\0${source.isTwoByte}\0${hash}`;
    let index = this.#shared.get(key);
    if (!index) {
      index = source.length <= MAX_WHOLE ? LineEnds.read(heap, source) : LineBlocks.read(heap, source);
      if (index) this.#shared.set(key, index);
    }
    return index;
  }
}

class LineEnds implements LineIndex {
  readonly #ends: Uint32Array;

  private constructor(ends: Uint32Array) {
    this.#ends = ends;
  }

  static read(heap: Heap, source: TextSpan): LineEnds | undefined {
    const units = readUnits(heap, source, 0, source.length);
    if (!units) return undefined;
    const ends: number[] = [];
    for (const at of lineFeeds(units)) ends.push(at);
    return new LineEnds(Uint32Array.from(ends));
  }

  get byteLength(): number {
    return this.#ends.byteLength;
  }

  placeOf(offset: number): Place {
    const ends = this.#ends;
    let low = 0;
    let high = ends.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (ends[middle]! < offset) low = middle + 1;
      else high = middle;
    }
    return { line: low + 1, column: offset - (low > 0 ? ends[low - 1]! : -1) };
  }
}

class LineBlocks implements LineIndex {
  /** By block: line feeds before it, and where the line that it begins in starts. */
  readonly #feeds: Uint32Array;
  readonly #lineStarts: Uint32Array;

  private constructor(blocks: number) {
    this.#feeds = new Uint32Array(blocks);
    this.#lineStarts = new Uint32Array(blocks);
  }

  get byteLength(): number {
    return this.#feeds.byteLength + this.#lineStarts.byteLength;
  }

  static read(heap: Heap, source: TextSpan): LineBlocks | undefined {
    const index = new LineBlocks(Math.ceil(source.length / BLOCK));
    let [feeds, lineStart, block] = [0, 0, 0];
    const endBlocks = (end: number): void => {
      for (; block * BLOCK < end; block++) {
        index.#feeds[block] = feeds;
        index.#lineStarts[block] = lineStart;
      }
    };
    for (let first = 0; first < source.length; first += CHUNK) {
      const units = readUnits(heap, source, first, Math.min(CHUNK, source.length - first));
      if (!units) return undefined;
      for (const at of lineFeeds(units)) {
        endBlocks(first + at + 1);
        feeds++;
        lineStart = first + at + 1;
      }
      endBlocks(first + units.length);
    }
    return index;
  }

  placeOf(offset: number, heap: Heap, find: () => TextSpan | undefined): Place {
    const source = find();
    if (!source || offset > source.length) return UNKNOWN_PLACE;
    const block = Math.min(Math.floor(offset / BLOCK), this.#feeds.length - 1);
    const first = block * BLOCK;
    const units = readUnits(heap, source, first, offset - first);
    if (!units) return UNKNOWN_PLACE;
    let [feeds, lineStart] = [this.#feeds[block]!, this.#lineStarts[block]!];
    for (const at of lineFeeds(units)) {
      feeds++;
      lineStart = first + at + 1;
    }
    return { line: feeds + 1, column: offset - lineStart + 1 };
  }
}

/** By the engine's own search: a loop over each character takes milliseconds as long as V8 has not compiled it. */
function* lineFeeds(units: Uint8Array | Uint16Array): Generator<number, void> {
  for (let at = units.indexOf(LINE_FEED); at >= 0; at = units.indexOf(LINE_FEED, at + 1)) yield at;
}

/** A hash of pieces of the text; undefined where one can't be read. */
function sample(heap: Heap, source: TextSpan): number | undefined {
  const step = Math.max(1, Math.floor((source.length - SAMPLE_CHARS) / (SAMPLES - 1)));
  let hash = 0;
  for (let i = 0; i < SAMPLES; i++) {
    const first = Math.min(i * step, source.length);
    const units = readUnits(heap, source, first, Math.min(SAMPLE_CHARS, source.length - first));
    if (!units) return undefined;
    for (let k = 0; k < units.length; k++) hash = Math.imul(hash ^ units[k]!, 0x0100_0193);
  }
  return hash;
}

function readUnits(
  heap: Heap,
  { data, isTwoByte }: TextSpan,
  first: number,
  length: number,
): Uint8Array | Uint16Array | undefined {
  const bytes = readSpan(heap, { data: data + first * (isTwoByte ? 2 : 1), length, isTwoByte })?.bytes;
  if (!bytes || !isTwoByte) return bytes;
  const aligned = bytes.byteOffset % 2 === 0 ? bytes : bytes.slice();
  return new Uint16Array(aligned.buffer, aligned.byteOffset, length);
}
