import type { Logger } from 'pino';

/** Interval at which a failed write is tried again. */
const FLUSH_INTERVAL_MS = 1000;
/** After each failure twice as long, up to this: a disk that is full may stay so for hours. */
const MAX_RETRY_MS = 5000;

export interface FlusherOptions {
  /** Commits wait for each other so long, to be written together. */
  gapMs: number;
  /** @throws Error when not everything was written: it is tried again */
  write: () => Promise<void>;
  /** Runs after each flush, failed or not. */
  tidy: () => Promise<void>;
  logger: Pick<Logger, 'error' | 'info'>;
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
  #failures = 0;
  /** Nothing is tried before, by the clock of `performance`. */
  #retryMs = 0;
  #isClosing = false;
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

  /** After a last flush, which does not wait where the one under way fails. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#isClosing = true;
    await this.flush();
    this.#closed = true;
    if (this.#error !== undefined)
      this.#options.logger.error({ err: new Error(this.#error) }, 'what was not written yet is lost');
  }

  async #commitSoon(): Promise<void> {
    const waitMs = this.#flushedMs + this.#options.gapMs - performance.now();
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, waitMs)));
    this.#commit = undefined;
    await this.flush();
    if (this.#error !== undefined) throw new Error(`nothing can be written: ${this.#error}`);
  }

  async #flush(): Promise<void> {
    if (this.#closed || (performance.now() < this.#retryMs && !this.#isClosing)) return;
    try {
      await this.#options.write();
      if (this.#failures > 0)
        this.#options.logger.info(`samples are written again, after ${this.#failures} tries`);
      this.#error = undefined;
      this.#failures = 0;
    } catch (error) {
      this.#noteFailure(error as Error);
    }
    this.#flushedMs = performance.now();
    await this.#options.tidy();
  }

  #noteFailure(error: Error): void {
    // What is wrong with a disk is one line; what follows is the database's advice for people who call it.
    const [message = ''] = error.message.split('\n');
    const isNew = message !== this.#error;
    this.#error = message;
    this.#retryMs = performance.now() + Math.min(MAX_RETRY_MS, FLUSH_INTERVAL_MS * 2 ** this.#failures++);
    if (isNew) this.#options.logger.error({ err: error }, 'samples could not be written: trying again');
  }
}
