import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Requests' bytes that were given back since garbage was last collected, from which on it is worth it. */
const MIN_SPENT_BYTES = 32 * 2 ** 20;
/** Nothing is held for so long: collecting takes tens of milliseconds, in which nothing is answered. */
const IDLE_MS = 1000;

let collect: (() => void) | undefined;

/** V8 collects as it allocates, and a collector that nobody talks to allocates nothing: large bodies would stay. */
export class SpentMemory {
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;

  /** `held`: what others still hold. */
  noteReleased(bytes: number, held: number): void {
    this.#bytes += bytes;
    if (this.#bytes < MIN_SPENT_BYTES) return;
    if (held > MIN_SPENT_BYTES) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#bytes = 0;
      collect ??= exposeCollection();
      collect();
    }, IDLE_MS).unref();
  }
}

function exposeCollection(): () => void {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
}
