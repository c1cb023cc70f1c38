import type { FileKey } from '../../common/base/brand.ts';

const TICK_MS = 1000;

/**
 * Keys that BPF shall report again later, with a fresh PID, because their file could not be opened. Bounded: of
 * too many the oldest is forgotten at once, which at worst brings its event early.
 */
export class ForgetQueue {
  readonly #dueAt = new Map<FileKey, number>();
  readonly #forget: (key: FileKey) => void;
  readonly #max: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(forget: (key: FileKey) => void, max: number) {
    this.#forget = forget;
    this.#max = max;
  }

  get size(): number {
    return this.#dueAt.size;
  }

  add(key: FileKey, delayMs: number): void {
    this.#dueAt.delete(key);
    if (this.#dueAt.size >= this.#max) this.#release(this.#dueAt.keys().next().value!);
    this.#dueAt.set(key, performance.now() + delayMs);
    this.#timer ??= setInterval(() => this.#tick(), TICK_MS).unref();
  }

  delete(key: FileKey): void {
    this.#dueAt.delete(key);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#dueAt.clear();
  }

  #tick(): void {
    const now = performance.now();
    for (const [key, dueAt] of [...this.#dueAt]) if (dueAt <= now) this.#release(key);
    if (this.#dueAt.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #release(key: FileKey): void {
    this.#dueAt.delete(key);
    this.#forget(key);
  }
}
