/** Columns that grow, and intervals of addresses that nest: which of them are open at an address. */
import { lastAtOrBelow } from '../../base/search.ts';
import type { AddressRange } from '../address-range.ts';

export class Column<T extends Uint32Array | Int32Array | Float64Array | Uint16Array> {
  values: T;
  length = 0;
  readonly #make: (length: number) => T;

  constructor(make: (length: number) => T) {
    this.#make = make;
    this.values = make(64);
  }

  push(value: number): void {
    if (this.length === this.values.length) {
      const grown = this.#make(this.length * 2);
      grown.set(this.values);
      this.values = grown;
    }
    this.values[this.length++] = value;
  }

  /** Without what growing took in advance. */
  finish(): T {
    return this.values.slice(0, this.length) as T;
  }
}

/** Real inlining nests some dozens deep; a hostile file must not make a look-up long. */
const MAX_NESTING = 4096;

/**
 * By ascending start, the wider one first where starts are equal. `parents[i]` is the one before `i` that was not
 * over where `i` starts, -1 if none.
 */
export class Intervals {
  readonly starts: Float64Array;
  readonly #ends: Float64Array;
  readonly values: Uint32Array;
  readonly #parents: Int32Array;

  /**
   * Columns of equal length; where start and end are equal, the later one is the inner one. With `parents` they are
   * those of {@link columns}.
   */
  constructor(starts: Float64Array, ends: Float64Array, values: Uint32Array, parents?: Int32Array) {
    if (parents) {
      this.starts = starts;
      this.#ends = ends;
      this.values = values;
      this.#parents = parents;
      return;
    }
    const order = sortedOrder(starts, ends);
    this.starts = order ? gather(starts, new Float64Array(order.length), order) : starts;
    this.#ends = order ? gather(ends, new Float64Array(order.length), order) : ends;
    this.values = order ? gather(values, new Uint32Array(order.length), order) : values;
    this.#parents = findParents(this.starts, this.#ends);
  }

  get byteLength(): number {
    return this.starts.length * 24;
  }

  /** What it is made of: starts, ends, values, parents. */
  get columns(): [Float64Array, Float64Array, Uint32Array, Int32Array] {
    return [this.starts, this.#ends, this.values, this.#parents];
  }

  /** Value of the innermost interval that contains the address, -1 if none. */
  find(address: number, range?: AddressRange): number {
    let found = -1;
    const take = (value: number): boolean => {
      found = value;
      return true;
    };
    this.visit(address, take, range);
    return found;
  }

  /**
   * Visits the values of all intervals that contain the address, the innermost first, until `visit` is true. Narrows
   * `range` to addresses of which the same ones would be visited.
   */
  visit(address: number, visit: (value: number) => boolean, range?: AddressRange): void {
    let i = lastAtOrBelow(this.starts, address);
    range?.narrow(this.starts[i] ?? 0, this.starts[i + 1] ?? Number.MAX_SAFE_INTEGER);
    for (let step = 0; i >= 0 && step < MAX_NESTING; step++) {
      const end = this.#ends[i]!;
      if (address < end) range?.narrow(0, end);
      else range?.narrow(end, Number.MAX_SAFE_INTEGER);
      if (address < end && visit(this.values[i]!)) return;
      i = this.#parents[i]!;
    }
  }
}

function gather<T extends Float64Array | Uint32Array>(from: T, to: T, order: Uint32Array): T {
  for (let i = 0; i < order.length; i++) to[i] = from[order[i]!]!;
  return to;
}

/** The one that was opened last is the parent; one that is over has its own parent behind it. */
function findParents(starts: Float64Array, ends: Float64Array): Int32Array {
  const parents = new Int32Array(starts.length);
  let open = -1;
  for (let i = 0; i < starts.length; i++) {
    const start = starts[i]!;
    while (open >= 0 && ends[open]! <= start) open = parents[open]!;
    parents[i] = open;
    open = i;
  }
  return parents;
}

/** Undefined where they are in order already. */
function sortedOrder(starts: Float64Array, ends: Float64Array): Uint32Array | undefined {
  let isSorted = true;
  for (let i = 1; i < starts.length && isSorted; i++) isSorted = compare(starts, ends, i - 1, i) <= 0;
  if (isSorted) return undefined;
  return sortPacked(starts, ends) ?? sortIndices(new Uint32Array(starts.length), starts, ends);
}

function sortIndices(order: Uint32Array, starts: Float64Array, ends: Float64Array): Uint32Array {
  for (let i = 0; i < order.length; i++) order[i] = i;
  return order.sort((a, b) => compare(starts, ends, a, b) || a - b);
}

/**
 * Sorting doubles needs no comparator, which is many times faster: start and index in one, where both have room in
 * its 53 bits. The index of equal starts is then put right.
 */
function sortPacked(starts: Float64Array, ends: Float64Array): Uint32Array | undefined {
  const count = starts.length;
  let [low, high] = [starts[0]!, starts[0]!];
  for (let i = 1; i < count; i++) {
    low = Math.min(low, starts[i]!);
    high = Math.max(high, starts[i]!);
  }
  if (!((high - low + 1) * count < Number.MAX_SAFE_INTEGER)) return undefined;
  const keys = new Float64Array(count);
  for (let i = 0; i < count; i++) keys[i] = (starts[i]! - low) * count + i;
  keys.sort();
  const order = new Uint32Array(count);
  for (let i = 0; i < count; i++) order[i] = keys[i]! % count;
  for (let first = 0; first < count; ) {
    let next = first + 1;
    while (next < count && starts[order[next]!] === starts[order[first]!]) next++;
    if (next - first > 1) order.subarray(first, next).sort((a, b) => ends[b]! - ends[a]! || a - b);
    first = next;
  }
  return order;
}

const compare = (starts: Float64Array, ends: Float64Array, a: number, b: number): number =>
  starts[a]! - starts[b]! || ends[b]! - ends[a]!;
