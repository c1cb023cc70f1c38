/**
 * 64-bit hashes → numbers from 0 on, in one array of numbers (open addressing, linear probing). Only the lower 32 bits of
 * the hashes stand in it: the owner says whether an entry is the one that is looked for.
 */

const NONE = -1;
const FIRST_ENTRIES = 1024;

export class HashIndex {
  readonly #isEntry: (value: number, low: number, high: number) => boolean;
  /** Lower half of a hash, then its value or NONE. Half of the entries are free at least. */
  #table = new Int32Array(FIRST_ENTRIES * 2).fill(NONE);
  #size = 0;

  constructor(isEntry: (value: number, low: number, high: number) => boolean) {
    this.#isEntry = isEntry;
  }

  get size(): number {
    return this.#size;
  }

  /** -1 where there is none. */
  get(low: number, high: number): number {
    return this.#table[this.#find(low | 0, high) + 1]!;
  }

  set(low: number, high: number, value: number): void {
    let at = this.#find(low | 0, high);
    if (this.#table[at + 1] === NONE && ++this.#size * 4 > this.#table.length) {
      this.#grow();
      at = this.#find(low | 0, high);
    }
    this.#table[at] = low;
    this.#table[at + 1] = value;
  }

  delete(low: number, high: number): void {
    const table = this.#table;
    let free = this.#find(low | 0, high);
    if (table[free + 1] === NONE) return;
    this.#size--;
    // those behind it that would not be found past a gap move up
    for (let at = this.#next(free); table[at + 1] !== NONE; at = this.#next(at)) {
      const home = this.#home(table[at]!);
      if (this.#distance(home, at) < this.#distance(free, at)) continue;
      table[free] = table[at]!;
      table[free + 1] = table[at + 1]!;
      free = at;
    }
    table[free + 1] = NONE;
  }

  /** Slot of the entry, or the free one that it would take. */
  #find(low: number, high: number): number {
    const table = this.#table;
    let at = this.#home(low);
    for (; table[at + 1] !== NONE; at = this.#next(at))
      if (table[at] === low && this.#isEntry(table[at + 1]!, low, high)) return at;
    return at;
  }

  #grow(): void {
    const old = this.#table;
    this.#table = new Int32Array(old.length * 2).fill(NONE);
    for (let i = 0; i < old.length; i += 2) {
      if (old[i + 1] === NONE) continue;
      let at = this.#home(old[i]!);
      while (this.#table[at + 1] !== NONE) at = this.#next(at);
      this.#table[at] = old[i]!;
      this.#table[at + 1] = old[i + 1]!;
    }
  }

  #home(low: number): number {
    return (low << 1) & (this.#table.length - 1);
  }

  #next(at: number): number {
    return (at + 2) & (this.#table.length - 1);
  }

  #distance(from: number, to: number): number {
    return (to - from) & (this.#table.length - 1);
  }
}
