/**
 * Worker threads that do all kinds of work, started by the first request and ended when idle: one when there is little
 * to do, since a thread takes 20 ms of CPU time to start and 10 MB (docs/decisions/one-worker.md). Another one starts
 * when a request has waited for a while and the others are at work, so that none waits long behind a large file of
 * another kind. It has to read again what files it needs: where others wait for a CPU themselves it is no help.
 */
import type { WorkKind } from './protocol.ts';
import { type Borrower, WorkerThread, type WorkerThreadOptions } from './worker-thread.ts';

export interface WorkerPoolOptions extends WorkerThreadOptions {
  idleMs?: number;
  /** How long a request waits for a thread before another one starts. */
  maxWaitMs?: number;
  /** Since threads were last needed at once: until then each kind keeps the thread that holds the files of its work. */
  calmMs?: number;
}

/** Two report intervals and a bit: it lives on while each of them brings something new, and then ends. */
const IDLE_MS = 12_000;
const MAX_WAIT_MS = 100;
const CALM_MS = 10_000;

interface Waiting {
  kind: WorkKind;
  borrow(thread: WorkerThread): Borrower;
  timer: NodeJS.Timeout | undefined;
}

export class WorkerPool {
  /** Threads that were started. */
  readonly stats = { started: 0 };
  readonly #options: WorkerPoolOptions;
  readonly #idleMs: number;
  readonly #maxWaitMs: number;
  readonly #calmMs: number;
  /** The one that was used last comes first. */
  readonly #threads: WorkerThread[] = [];
  readonly #waiting: Waiting[] = [];
  #crowdedAt = Number.NEGATIVE_INFINITY;
  /** Threads that were released and are not gone yet. */
  #ending = 0;
  #isStopped = false;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
    this.#idleMs = options.idleMs ?? IDLE_MS;
    this.#maxWaitMs = options.maxWaitMs ?? MAX_WAIT_MS;
    this.#calmMs = options.calmMs ?? CALM_MS;
  }

  /** How many threads there are. */
  get size(): number {
    return this.#threads.length;
  }

  /**
   * Calls `borrow` with a thread as soon as there is one, at once where that can be; never once the pool is stopped, or
   * when the function was called that this returns.
   */
  lend(kind: WorkKind, borrow: (thread: WorkerThread) => Borrower): () => void {
    const waiting: Waiting = { kind, borrow, timer: undefined };
    if (!this.#isStopped) {
      this.#waiting.push(waiting);
      this.#serve();
      this.#watch(waiting);
    }
    return () => this.#forget(waiting);
  }

  /** Takes it back from who borrowed it, who has its answer. */
  giveBack(thread: WorkerThread): void {
    thread.borrower = undefined;
    if (thread.isReleased) void this.#replace(thread);
    else {
      thread.hold(false);
      thread.idleTimer = setTimeout(() => this.discard(thread), this.#idleMs).unref();
    }
    this.#serve();
  }

  /** Ends it, whatever it does; one without a request ends by itself. */
  async discard(thread: WorkerThread): Promise<void> {
    this.#remove(thread);
    const end = thread.end();
    this.#serve();
    await end;
  }

  /**
   * Gives up what the threads hold: ends those that are idle, the others behind the requests that they have. What they
   * held is free before another one takes anything.
   */
  release(): void {
    for (const thread of [...this.#threads]) {
      if (thread.borrower) thread.isReleased = true;
      else void this.#replace(thread);
    }
  }

  /** Ends all threads; nothing is lent any more. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const waiting of [...this.#waiting]) this.#forget(waiting);
    await Promise.all([...this.#threads].map((thread) => this.discard(thread)));
  }

  #serve(): void {
    for (let next = this.#next(); next; next = this.#next()) {
      this.#forget(next.waiting);
      this.#use(next.thread, next.waiting);
    }
  }

  /** Whose turn it is, and the thread for it; the first request starts one. */
  #next(): { thread: WorkerThread; waiting: Waiting } | undefined {
    if (this.#waiting.length === 0 || this.#ending > 0) return undefined;
    const waiting = this.#waiting[0]!;
    const idle = this.#threads.filter(({ borrower }) => !borrower);
    const isCrowded = performance.now() - this.#crowdedAt < this.#calmMs;
    const thread =
      (isCrowded && idle.find(({ kinds }) => kinds.has(waiting.kind))) ||
      idle[0] ||
      (this.#threads.length === 0 ? this.#start() : undefined);
    return thread && { thread, waiting };
  }

  /** Starts a thread if it still waits after a while, and there is none that would be free if it had had a CPU. */
  #watch(waiting: Waiting): void {
    if (!this.#waiting.includes(waiting)) return;
    waiting.timer = setTimeout(() => {
      const areBusy = this.#threads.every((thread) => thread.isBusyFor(this.#maxWaitMs));
      if (this.#ending === 0 && areBusy) this.#start();
      this.#serve();
      this.#watch(waiting);
    }, this.#maxWaitMs);
  }

  #forget(waiting: Waiting): void {
    clearTimeout(waiting.timer);
    const index = this.#waiting.indexOf(waiting);
    if (index >= 0) this.#waiting.splice(index, 1);
  }

  #start(): WorkerThread {
    this.stats.started++;
    const thread: WorkerThread = new WorkerThread(this.#options, () => {
      this.#remove(thread);
      this.#serve();
    });
    this.#threads.push(thread);
    return thread;
  }

  #use(thread: WorkerThread, { kind, borrow }: Waiting): void {
    clearTimeout(thread.idleTimer);
    this.#threads.splice(this.#threads.indexOf(thread), 1);
    this.#threads.unshift(thread);
    for (const { kinds } of this.#threads) kinds.delete(kind);
    thread.kinds.add(kind);
    if (this.#threads.some((other) => other !== thread && other.borrower))
      this.#crowdedAt = performance.now();
    thread.hold(true);
    thread.lend(borrow);
  }

  #remove(thread: WorkerThread): void {
    const index = this.#threads.indexOf(thread);
    if (index >= 0) this.#threads.splice(index, 1);
  }

  async #replace(thread: WorkerThread): Promise<void> {
    this.#ending++;
    await this.discard(thread);
    this.#ending--;
    this.#serve();
  }
}
