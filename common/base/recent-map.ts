/**
 * What was asked for lately, within a bound: two maps, of which the older one is dropped when the younger one is full.
 * It keeps the last half at least, as an LRU cache keeps all; a look-up costs that of a map, where lru-cache costs
 * three times as much, which showed where hundreds of thousands of names are looked up.
 */
export class RecentMap<K, V extends NonNullable<unknown>> {
  readonly #maxWeight: number;
  readonly #weigh: (value: V, key: K) => number;
  #young = new Map<K, V>();
  #old = new Map<K, V>();
  #youngWeight = 0;
  #oldWeight = 0;

  /** `weigh` gives positive numbers, whose sum stays within `maxWeight`; without it, it is the number of entries. */
  constructor(maxWeight: number, weigh: (value: V, key: K) => number = () => 1) {
    this.#maxWeight = maxWeight;
    this.#weigh = weigh;
  }

  /** Weight of all entries. */
  get weight(): number {
    return this.#youngWeight + this.#oldWeight;
  }

  get(key: K): V | undefined {
    const young = this.#young.get(key);
    if (young !== undefined) return young;
    const old = this.#old.get(key);
    if (old !== undefined) this.set(key, old);
    return old;
  }

  /** `key` must be new. What weighs more than half of the bound is not kept. */
  set(key: K, value: V): void {
    const weight = this.#weigh(value, key);
    const half = this.#maxWeight / 2;
    if (weight > half) return;
    if (this.#youngWeight + weight > half) {
      this.#old = this.#young;
      this.#oldWeight = this.#youngWeight;
      this.#young = new Map();
      this.#youngWeight = 0;
    }
    this.#young.set(key, value);
    this.#youngWeight += weight;
  }
}
