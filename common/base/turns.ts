/** Work of which only so much is done at a time. The rest waits for its turn, in order. */
export class Turns {
  readonly #max: number;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  async run<T>(work: () => T | Promise<T>): Promise<T> {
    if (this.#running < this.#max) this.#running++;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      // between two of them the event loop goes on
      setImmediate(() => this.#hand());
    }
  }

  #hand(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#running--;
  }
}
