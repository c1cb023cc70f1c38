/**
 * Files that wait, open, for the one worker that makes tables. Not in the order they came: small files go before large
 * ones, which take as long as hundreds of them. Before any of them it is seen which language runtimes there are: as long
 * as that isn't known, the functions that people wrote have no names.
 */
interface Waiting {
  /** The least goes first. */
  rank: number;
  work: () => Promise<void>;
}

/** A file of 100 MB lets those go first that come up to 2 s later: each goes in the end, whatever else comes. */
const BYTES_PER_MS = 50_000;
/** To look for a runtime: whoever makes many files that are called like one holds up the others no longer than that. */
const HEAD_START_MS = 20_000;

export class BuildQueue {
  readonly #now: () => number;
  readonly #waiting: Waiting[] = [];
  #running: Promise<void> | undefined;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Of a file of `size` bytes. `build` must not reject. One runs at a time. */
  add(size: number, build: () => Promise<void>): void {
    this.#add(size / BYTES_PER_MS, build);
  }

  /** For a runtime in a file. `look` must not reject. */
  addLook(look: () => Promise<void>): void {
    this.#add(-HEAD_START_MS, look);
  }

  #add(offsetMs: number, work: () => Promise<void>): void {
    this.#waiting.push({ rank: this.#now() + offsetMs, work });
    this.#running ??= this.#run();
  }

  /** Until nothing waits. */
  async drained(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    for (let next = this.#take(); next; next = this.#take()) await next.work();
    this.#running = undefined;
  }

  #take(): Waiting | undefined {
    let first = 0;
    for (const [i, { rank }] of this.#waiting.entries()) {
      if (rank < this.#waiting[first]!.rank) first = i;
    }
    return this.#waiting.splice(first, 1)[0];
  }
}
