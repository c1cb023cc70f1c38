import type { Logger } from 'pino';

/** What could not be written is tried again so often. */
const FLUSH_INTERVAL_MS = 1000;

export interface FlusherOptions {
  /** Those who commit wait for each other so long, to be written together. */
  gapMs: number;
  /** @throws Error when not everything was written: it is tried again */
  write: () => Promise<void>;
  /** Runs after each flush, failed or not. */
  tidy: () => Promise<void>;
  logger: Pick<Logger, 'error'>;
}

/** Writes what waits, one flush after the other, each second and when somebody asks. */
export class Flusher {
  readonly #options: FlusherOptions;
  readonly #timer: NodeJS.Timeout;
  #flushing: Promise<void> = Promise.resolve();
  /** Begins once the one under way ends: for all that ask meanwhile, however slow the database is. */
  #next: Promise<void> | undefined;
  #error: string | undefined;
  /** Under way for all that ask before it begins. */
  #commit: Promise<void> | undefined;
  /** When the last flush ended, by the clock of `performance`. */
  #flushedMs = 0;
  #closed = false;

  constructor(options: FlusherOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.flush(), FLUSH_INTERVAL_MS);
    this.#timer.unref();
  }

  /** Why the last flush failed. */
  get error(): string | undefined {
    return this.#error;
  }

  /** A failure is logged, and tried again with the next flush. */
  flush(): Promise<void> {
    this.#next ??= this.#flushing.then(() => {
      this.#next = undefined;
      this.#flushing = this.#flush();
      return this.#flushing;
    });
    return this.#next;
  }

  /** @throws Error when what waits could not be written */
  commit(): Promise<void> {
    this.#commit ??= this.#commitSoon();
    return this.#commit;
  }

  /** After a last flush. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.flush();
    this.#closed = true;
  }

  async #commitSoon(): Promise<void> {
    const waitMs = this.#flushedMs + this.#options.gapMs - performance.now();
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, waitMs)));
    this.#commit = undefined;
    await this.flush();
    if (this.#error !== undefined) throw new Error(`nothing can be written: ${this.#error}`);
  }

  async #flush(): Promise<void> {
    if (this.#closed) return;
    try {
      await this.#options.write();
      this.#error = undefined;
    } catch (error) {
      this.#error = (error as Error).message;
      this.#options.logger.error({ err: error }, 'samples could not be written: trying again');
    }
    this.#flushedMs = performance.now();
    await this.#options.tidy();
  }
}
