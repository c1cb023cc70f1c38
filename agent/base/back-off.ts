/** Exponential back-off by key: the pause grows with each failure. The least recently punished keys are forgotten first. */
import { LRUCache } from 'lru-cache';

export interface Growth {
  firstMs: number;
  factor: number;
  maxMs: number;
}

interface Failures {
  times: number;
  until: number;
}

export class BackOff<Key extends string | number> {
  readonly #failures: LRUCache<Key, Failures>;
  readonly #now: () => number;

  /** @param now milliseconds */
  constructor(max: number, now: () => number = () => performance.now()) {
    this.#failures = new LRUCache({ max });
    this.#now = now;
  }

  get size(): number {
    return this.#failures.size;
  }

  /** True while the key is backed off, if it has failed at least `times` times. */
  isLeftAlone(key: Key, times = 1): boolean {
    // the usual case costs nothing
    if (this.#failures.size === 0) return false;
    const known = this.#failures.get(key);
    return known !== undefined && known.times >= times && this.#now() < known.until;
  }

  /** It failed once more. How long it is left alone, milliseconds. */
  note(key: Key, { firstMs, factor, maxMs }: Growth): number {
    const times = (this.#failures.get(key)?.times ?? 0) + 1;
    const pauseMs = Math.min(firstMs * factor ** (times - 1), maxMs);
    this.#failures.set(key, { times, until: this.#now() + pauseMs });
    return pauseMs;
  }
}
