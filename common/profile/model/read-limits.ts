/**
 * What reading a profile may cost. A file's size says nothing about it: gzip makes a gigabyte of a megabyte, two bytes of
 * protobuf become an object of a hundred, and a stack that grows by a frame with each event costs the square of the file.
 * So every reader says what it is about to hold, before it holds it.
 */
export interface ReadLimits {
  /** Bytes of everything that is held while a file is read, unpacked input included: an estimate from above. */
  maxMemoryBytes: number;
  /** What a person can do where that is not enough; ends the sentence. */
  advice: string;
}

export const DEFAULT_READ_LIMITS: ReadLimits = {
  maxMemoryBytes: 1 << 30,
  advice: 'read a shorter recording',
};

/** A file that would cost more than the limits allow; the message says what, how much, and what to do. */
export class ReadLimitError extends Error {
  override readonly name = 'ReadLimitError';
  readonly limitBytes: number;
  /** What was being read when the limit was reached: `strings`, `stack frames`, … */
  readonly what: string;
  /** How many of them there were. */
  readonly count: number;

  readonly #limits: ReadLimits;

  constructor(limits: ReadLimits, what: string, count: number, fileName = 'this file') {
    const mebibytes = Math.round(limits.maxMemoryBytes / 2 ** 20);
    super(
      `${fileName} would need more than ${mebibytes} MiB of memory (at ${count.toLocaleString('en')} ${what}): ${limits.advice}`,
    );
    this.#limits = limits;
    this.limitBytes = limits.maxMemoryBytes;
    this.what = what;
    this.count = count;
  }

  /** The same, of a file that has a name. */
  of(fileName: string): ReadLimitError {
    return new ReadLimitError(this.#limits, this.what, this.count, fileName);
  }
}

/** What one read has spent of its limits. */
export class ReadBudget {
  readonly limits: ReadLimits;
  readonly #counts = new Map<string, number>();
  #left: number;

  constructor(limits: ReadLimits = DEFAULT_READ_LIMITS) {
    this.limits = limits;
    this.#left = limits.maxMemoryBytes;
  }

  get leftBytes(): number {
    return this.#left;
  }

  /**
   * Before `bytes` are held for `count` more of `what`.
   *
   * @throws ReadLimitError
   */
  spend(what: string, bytes: number, count = 1): void {
    this.#left -= bytes;
    const known = (this.#counts.get(what) ?? 0) + count;
    this.#counts.set(what, known);
    if (this.#left < 0) throw new ReadLimitError(this.limits, what, known);
  }

  /** What was held for a while is not any more. */
  release(bytes: number): void {
    this.#left += bytes;
  }
}
