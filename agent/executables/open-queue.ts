import type { FileRecord } from '../records/records.ts';
import type { Executable } from './files/executable.ts';

/** A dead network mount blocks a thread of libuv's pool; two of the four can be lost to that. */
const MAX_AT_ONCE = 2;
export const MAX_OPENS_WAITING = 1024;

/** Files that BPF reported and that wait to be opened, which comes first and soon: their process may be about to end. */
export class OpenQueue {
  readonly #open: (record: FileRecord, executable: Executable) => Promise<void>;
  readonly #waiting: { record: FileRecord; executable: Executable }[] = [];
  #opening = 0;

  /** `open` must not reject. */
  constructor(open: (record: FileRecord, executable: Executable) => Promise<void>) {
    this.#open = open;
  }

  /** Files that are not open yet. */
  get size(): number {
    return this.#waiting.length + this.#opening;
  }

  /** False where too many wait. */
  add(record: FileRecord, executable: Executable): boolean {
    if (this.#waiting.length >= MAX_OPENS_WAITING) return false;
    this.#waiting.push({ record, executable });
    this.#next();
    return true;
  }

  /** Forgets those that wait. */
  clear(): void {
    this.#waiting.length = 0;
  }

  #next(): void {
    while (this.#opening < MAX_AT_ONCE) {
      const next = this.#waiting.shift();
      if (!next) return;
      this.#opening++;
      void this.#open(next.record, next.executable).finally(() => {
        this.#opening--;
        this.#next();
      });
    }
  }
}
