/**
 * Which entry of a growing list of code ranges covers an address: the newest that does. JITs write an entry for each
 * function that they compile and none for what they throw away, so memory that is used again has older entries, too.
 *
 * New entries wait in a log; the first look-up after them lays them over the sorted, disjoint pieces that there are. So
 * does a log that has become long, since 150,000 entries at once take a quarter of a second.
 */

import { lastAtOrBelow } from '../base/search.ts';

/** Sorted and disjoint. */
interface Pieces {
  starts: Float64Array;
  ends: Float64Array;
  places: Float64Array;
  length: number;
}

const BYTES_A_PIECE = 24;
const MAX_LOG = 4096;

const EMPTY: Pieces = makePieces(0);

export class CodeMap {
  readonly #max: number;
  #pieces = EMPTY;
  #log: number[] = [];
  #added = 0;

  /** Takes at most `max` entries, and no more while it holds that many pieces. */
  constructor(max: number) {
    this.#max = max;
  }

  /** Entries taken so far. */
  get added(): number {
    return this.#added;
  }

  get byteLength(): number {
    return this.#pieces.starts.length * BYTES_A_PIECE + this.#log.length * 8;
  }

  /** `place` is any number that says what lies there. False where there is no room. */
  add(start: number, size: number, place: number): boolean {
    if (this.#pieces.length + this.#log.length / 3 >= this.#max) return false;
    this.#log.push(start, start + size, place);
    this.#added++;
    if (this.#log.length >= MAX_LOG * 3) this.#settle();
    return true;
  }

  /** The place of the newest entry that covers the address. */
  find(address: number): number | undefined {
    this.#settle();
    const { starts, ends, places, length } = this.#pieces;
    const i = lastAtOrBelow(starts, address, 0, length);
    return i >= 0 && address < ends[i]! ? places[i] : undefined;
  }

  #settle(): void {
    if (this.#log.length === 0) return;
    const log = Float64Array.from(this.#log);
    this.#log = [];
    this.#pieces = overlay(this.#pieces, settleLog(log));
  }
}

function makePieces(capacity: number): Pieces {
  const column = () => new Float64Array(capacity);
  return { starts: column(), ends: column(), places: column(), length: 0 };
}

function push(pieces: Pieces, start: number, end: number, place: number): void {
  if (start >= end) return;
  const at = pieces.length++;
  pieces.starts[at] = start;
  pieces.ends[at] = end;
  pieces.places[at] = place;
}

/** Triples of start, end and place, oldest first. Where some overlap, the newer half is laid over the older one. */
function settleLog(log: Float64Array): Pieces {
  const count = log.length / 3;
  const order = Uint32Array.from({ length: count }, (_, i) => i * 3).sort((a, b) => log[a]! - log[b]!);
  if (areDisjoint(log, order)) {
    const pieces = makePieces(count);
    for (const at of order) push(pieces, log[at]!, log[at + 1]!, log[at + 2]!);
    return pieces;
  }
  const half = (count >>> 1) * 3;
  return overlay(settleLog(log.subarray(0, half)), settleLog(log.subarray(half)));
}

function areDisjoint(log: Float64Array, order: Uint32Array): boolean {
  for (let i = 1; i < order.length; i++) if (log[order[i - 1]! + 1]! > log[order[i]!]!) return false;
  return true;
}

/** What the newer pieces leave uncovered of the older ones, and the newer ones. */
function overlay(older: Pieces, newer: Pieces): Pieces {
  if (older.length === 0) return newer;
  const out = makePieces(older.length + 2 * newer.length);
  let i = 0;
  let covered = Number.NEGATIVE_INFINITY;
  for (let j = 0; j < newer.length; j++) {
    const [start, end] = [newer.starts[j]!, newer.ends[j]!];
    for (; i < older.length && older.starts[i]! < start; i++) {
      push(out, Math.max(older.starts[i]!, covered), Math.min(older.ends[i]!, start), older.places[i]!);
      // its rest may stick out behind
      if (older.ends[i]! > start) break;
    }
    push(out, start, end, newer.places[j]!);
    while (i < older.length && older.ends[i]! <= end) i++;
    covered = end;
  }
  for (; i < older.length; i++) {
    push(out, Math.max(older.starts[i]!, covered), older.ends[i]!, older.places[i]!);
  }
  return trim(out);
}

/** Gives room back that was not needed. */
function trim(pieces: Pieces): Pieces {
  const { starts, ends, places, length } = pieces;
  return {
    starts: starts.slice(0, length),
    ends: ends.slice(0, length),
    places: places.slice(0, length),
    length,
  };
}
