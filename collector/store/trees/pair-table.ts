import { HASH_KEYS } from '../../../common/base/hash-keys.ts';

const FIRST_SLOTS = 256;
/** Words of a slot: both keys, the value and 1 (0 when free), and one that makes a slot lie within one line of the cache. */
const STRIDE = 4;
const [SECOND, VALUE] = [1, 2];

/** A number for a pair of 32-bit numbers. A `Map` would need an object for each key, far away from its entry. */
export class PairTable {
  /** Open addressing. */
  #slots = new Int32Array(FIRST_SLOTS * STRIDE);
  #count = 0;

  get bytes(): number {
    return this.#slots.byteLength;
  }

  get(a: number, b: number): number | undefined {
    const at = this.#find(a, b);
    const value = this.#slots[at + VALUE]!;
    return value === 0 ? undefined : value - 1;
  }

  /** `value`: 0 or more. */
  set(a: number, b: number, value: number): void {
    const at = this.#find(a, b);
    const isNew = this.#slots[at + VALUE] === 0;
    this.#slots[at] = a;
    this.#slots[at + SECOND] = b;
    this.#slots[at + VALUE] = value + 1;
    if (isNew && 2 * ++this.#count * STRIDE > this.#slots.length) this.#grow();
  }

  #find(a: number, b: number): number {
    const slots = this.#slots;
    const mask = slots.length - 1;
    let at = (hashPair(a, b) * STRIDE) & mask;
    while (slots[at + VALUE] !== 0 && !(slots[at] === a && slots[at + SECOND] === b))
      at = (at + STRIDE) & mask;
    return at;
  }

  #grow(): void {
    const old = this.#slots;
    this.#slots = new Int32Array(2 * old.length);
    for (let i = 0; i < old.length; i += STRIDE) {
      if (old[i + VALUE] === 0) continue;
      const at = this.#find(old[i]!, old[i + SECOND]!);
      this.#slots.set(old.subarray(i, i + STRIDE), at);
    }
  }
}

const [KEY_A, KEY_B] = HASH_KEYS;

/** Mixes two ids; the finalizer of MurmurHash3 (32 bit) spreads the low bits that a mask keeps. */
export function hashPair(a: number, b: number): number {
  let hash = Math.imul(a, KEY_A) ^ Math.imul(b, KEY_B);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
