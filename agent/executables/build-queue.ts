/**
 * Files that wait, open, for the one worker that makes tables. Not in the order they came: a process maps its program
 * and its libraries together, and as long as the file of a language runtime waits the functions that people wrote have
 * no names. So such files go first, by what they are called (what is in them is not known yet), and small files
 * before large ones, which take as long as hundreds of them. Before all of them it is seen which runtimes there are.
 */
export interface WaitingFile {
  /** Last component of the path. */
  name: string;
  /** Bytes. */
  size: number;
}

interface Waiting {
  /** The least goes first. */
  rank: number;
  build: () => Promise<void>;
}

/** A file of 100 MB lets those go first that come up to 2 s later: each goes in the end, whatever else comes. */
const BYTES_PER_MS = 50_000;
/** Of files that are called like a runtime: whoever makes many of them holds up the others no longer than that. */
const HEAD_START_MS = 20_000;
/** To look for the runtime in a file takes a small part of what its table does. */
const LOOK_START_MS = 5000;

export class BuildQueue {
  readonly #goesFirst: (name: string) => boolean;
  readonly #now: () => number;
  readonly #waiting: Waiting[] = [];
  #running: Promise<void> | undefined;

  constructor(goesFirst: (name: string) => boolean, now: () => number = () => performance.now()) {
    this.#goesFirst = goesFirst;
    this.#now = now;
  }

  /** `build` must not reject. One runs at a time. */
  add({ name, size }: WaitingFile, build: () => Promise<void>): void {
    this.#add(this.#goesFirst(name) ? -HEAD_START_MS : size / BYTES_PER_MS, build);
  }

  /** Of a file of those that go first: before any of them is built. `look` must not reject. */
  addLook(look: () => Promise<void>): void {
    this.#add(-HEAD_START_MS - LOOK_START_MS, look);
  }

  #add(offsetMs: number, build: () => Promise<void>): void {
    this.#waiting.push({ rank: this.#now() + offsetMs, build });
    this.#running ??= this.#run();
  }

  /** Until nothing waits. */
  async drained(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    for (let next = this.#take(); next; next = this.#take()) await next.build();
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
