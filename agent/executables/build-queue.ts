/**
 * Open files that wait for the one worker that makes tables. A large file takes as long as hundreds of small ones, so small
 * ones go first. Before all of them go the looks for language runtimes: until these are known, the functions that people
 * wrote have no names.
 */
interface Waiting {
  /** The least goes first. */
  rank: number;
  work: () => Promise<void>;
}

/** A file of 100 MB lets files go first that come up to 2 s later, and none that come after that: it always gets its turn. */
const BYTES_PER_MS = 50_000;
/** The worker has the next file before the main thread has come to install the table of the last one. */
const AT_ONCE = 3;
/** Of looks for a runtime; bounded, since anybody can make many files that are called like a runtime. */
const HEAD_START_MS = 20_000;

export class BuildQueue {
  readonly #now: () => number;
  readonly #atOnce: number;
  readonly #waiting: Waiting[] = [];
  readonly #running = new Set<Promise<void>>();
  /** Less than those, once one has found nothing to do and is about to settle. */
  #active = 0;

  constructor(now: () => number = () => performance.now(), atOnce = AT_ONCE) {
    this.#now = now;
    this.#atOnce = atOnce;
  }

  /** Queues the build of a file of `size` bytes. `build` must not reject. */
  add(size: number, build: () => Promise<void>): void {
    this.#add(size / BYTES_PER_MS, build);
  }

  /** For a runtime in a file. `look` must not reject. */
  addLook(look: () => Promise<void>): void {
    this.#add(-HEAD_START_MS, look);
  }

  #add(offsetMs: number, work: () => Promise<void>): void {
    this.#waiting.push({ rank: this.#now() + offsetMs, work });
    if (this.#active < this.#atOnce) this.#start();
  }

  /** Until nothing waits. */
  async drained(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  #start(): void {
    this.#active++;
    const running = this.#run().finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  async #run(): Promise<void> {
    for (let next = this.#take(); next; next = this.#take()) await next.work();
    this.#active--;
  }

  #take(): Waiting | undefined {
    let first = 0;
    for (const [i, { rank }] of this.#waiting.entries()) {
      if (rank < this.#waiting[first]!.rank) first = i;
    }
    return this.#waiting.splice(first, 1)[0];
  }
}
