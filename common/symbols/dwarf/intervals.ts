/** Columns that grow, and intervals of addresses that nest: which of them are open at an address. */

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
  readonly #values: Uint32Array;
  readonly #parents: Int32Array;

  /**
   * Columns of equal length; where start and end are equal, the later one is the inner one. With `parents` they are
   * those of {@link columns}.
   */
  constructor(starts: Float64Array, ends: Float64Array, values: Uint32Array, parents?: Int32Array) {
    if (parents) {
      this.starts = starts;
      this.#ends = ends;
      this.#values = values;
      this.#parents = parents;
      return;
    }
    const order = sortedOrder(starts, ends);
    const at = (column: Float64Array): Float64Array => Float64Array.from(order, (i) => column[i]!);
    this.starts = at(starts);
    this.#ends = at(ends);
    this.#values = Uint32Array.from(order, (i) => values[i]!);
    this.#parents = new Int32Array(order.length);
    const open: number[] = [];
    for (let i = 0; i < order.length; i++) {
      while (open.length > 0 && this.#ends[open.at(-1)!]! <= this.starts[i]!) open.pop();
      this.#parents[i] = open.at(-1) ?? -1;
      open.push(i);
    }
  }

  get byteLength(): number {
    return this.starts.length * 24;
  }

  /** What it is made of: starts, ends, values, parents. */
  get columns(): [Float64Array, Float64Array, Uint32Array, Int32Array] {
    return [this.starts, this.#ends, this.#values, this.#parents];
  }

  /** Value of the innermost interval that contains the address, -1 if none. */
  find(address: number): number {
    let found = -1;
    this.visit(address, (value) => {
      found = value;
      return true;
    });
    return found;
  }

  /** Visits the values of all intervals that contain the address, the innermost first, until `visit` is true. */
  visit(address: number, visit: (value: number) => boolean): void {
    let i = lastAtOrBelow(this.starts, this.starts.length, address);
    for (let step = 0; i >= 0 && step < MAX_NESTING; step++) {
      if (address < this.#ends[i]! && visit(this.#values[i]!)) return;
      i = this.#parents[i]!;
    }
  }
}

/** Index of the last of `count` ascending values that is not greater, -1 if none. */
export function lastAtOrBelow(
  sorted: Float64Array | Uint32Array,
  count: number,
  value: number,
  from = 0,
): number {
  let low = from;
  let high = count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle]! <= value) low = middle + 1;
    else high = middle;
  }
  return low > from ? low - 1 : -1;
}

function sortedOrder(starts: Float64Array, ends: Float64Array): Uint32Array {
  const order = new Uint32Array(starts.length);
  let isSorted = true;
  for (let i = 0; i < order.length; i++) {
    order[i] = i;
    if (i > 0 && compare(starts, ends, i - 1, i) > 0) isSorted = false;
  }
  return isSorted ? order : order.sort((a, b) => compare(starts, ends, a, b) || a - b);
}

const compare = (starts: Float64Array, ends: Float64Array, a: number, b: number): number =>
  starts[a]! - starts[b]! || ends[b]! - ends[a]!;
