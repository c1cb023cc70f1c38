/**
 * Workers that do all kinds of work, started by the first request and ended when idle: one when there is little to do,
 * since each is a process (docs/decisions/process/file-worker.md). Another one starts
 * when a request has waited for a while and the others are at work, so that none waits long behind a large file of
 * another kind. It has to read again what files it needs: where others wait for a CPU themselves it does not help.
 */
import { FilePenalties } from './file-penalties.ts';
import { IdleTime } from './idle-time.ts';
import { readPrivateBytes } from './process-use.ts';
import type { WorkKind } from './protocol.ts';
import { type Borrower, type WorkerOptions, WorkerProcess } from './worker-process.ts';

export interface WorkerPoolOptions extends WorkerOptions {
  /** Idle time of the only worker, see {@link IdleTime}. */
  idleMs?: number;
  /** Idle time of workers that are not the only one. */
  extraIdleMs?: number;
  /** How long a request waits for a worker before another one starts. */
  maxWaitMs?: number;
  /** Told of files that took a worker down. */
  warn?: (message: string) => void;
  /** Since workers were last needed at once: until then each kind keeps the worker that holds the files of its work. */
  calmMs?: number;
}

/** Two report intervals and a bit: it lives on while each of them brings something new, and then ends. */
const IDLE_MS = 12_000;
/** One report interval and a bit: one that each of them needs would else be started, and read its files, each time. */
const EXTRA_IDLE_MS = 6000;
const MAX_WAIT_MS = 100;
const CALM_MS = 10_000;
/** After a worker failed; doubled by each that fails within a minute. */
const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 10_000;
const FORGIVE_MS = 60_000;

interface Waiting {
  kind: WorkKind;
  borrow(worker: WorkerProcess): Borrower;
  timer: NodeJS.Timeout | undefined;
}

export class WorkerPool {
  readonly stats = {
    started: 0,
    /** That ended before they were asked to, or were ended for what they took. */
    failed: 0,
  };
  readonly penalties: FilePenalties;
  readonly #options: WorkerPoolOptions;
  readonly #idle: IdleTime;
  readonly #extraIdleMs: number;
  readonly #maxWaitMs: number;
  readonly #calmMs: number;
  /** The one that was used last comes first. */
  readonly #workers: WorkerProcess[] = [];
  readonly #waiting: Waiting[] = [];
  #crowdedAt = Number.NEGATIVE_INFINITY;
  /** Failures that are not forgotten yet, when the last one was, and until when no other worker starts. */
  #failures = 0;
  #failedAtMs = Number.NEGATIVE_INFINITY;
  #pausedUntilMs = 0;
  /** Workers that were released and are not gone yet. */
  #ending = 0;
  #isStopped = false;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
    this.penalties = new FilePenalties(options.warn);
    const { idleMs = IDLE_MS } = options;
    this.#idle = new IdleTime(idleMs);
    this.#extraIdleMs = options.extraIdleMs ?? Math.min(EXTRA_IDLE_MS, idleMs);
    this.#maxWaitMs = options.maxWaitMs ?? MAX_WAIT_MS;
    this.#calmMs = options.calmMs ?? CALM_MS;
  }

  /** How many workers there are. */
  get size(): number {
    return this.#workers.length;
  }

  get pids(): number[] {
    return this.#workers.flatMap(({ pid }) => (pid === undefined ? [] : [pid]));
  }

  /** Memory that is theirs alone: what they share with this process counts once. */
  get privateBytes(): number {
    let bytes = 0;
    for (const { pid } of this.#workers)
      bytes += (pid === undefined ? undefined : readPrivateBytes(pid)) ?? 0;
    return bytes;
  }

  /**
   * Calls `borrow` with a worker as soon as there is one, at once where that can be; never once the pool is stopped, or
   * when the function was called that this returns.
   */
  lend(kind: WorkKind, borrow: (worker: WorkerProcess) => Borrower): () => void {
    const waiting: Waiting = { kind, borrow, timer: undefined };
    if (!this.#isStopped) {
      this.#waiting.push(waiting);
      this.#serve();
      this.#watch(waiting);
    }
    return () => this.#forget(waiting);
  }

  /** Takes it back from who borrowed it, who has its answer. */
  giveBack(worker: WorkerProcess): void {
    worker.giveBack();
    if (worker.isReleased) void this.#replace(worker);
    else {
      worker.hold(false);
      this.#letEnd(worker, this.#workers.length > 1 ? this.#extraIdleMs : this.#idle.ms);
    }
    this.#serve();
  }

  /** After a while without a request; the last one that is left has the time that is left to it. */
  #letEnd(worker: WorkerProcess, idleMs: number, sinceMs = performance.now()): void {
    worker.idleTimer = setTimeout(() => {
      const isLast = this.#workers.length === 1;
      const leftMs = sinceMs + this.#idle.ms - performance.now();
      if (isLast && leftMs >= 1) {
        this.#letEnd(worker, leftMs, sinceMs);
        return;
      }
      if (isLast) this.#idle.noteEnd(performance.now());
      void this.discard(worker);
    }, idleMs).unref();
  }

  /** Ends it, whatever it does; one without a request ends by itself. */
  async discard(worker: WorkerProcess): Promise<void> {
    this.#remove(worker);
    const end = worker.end();
    this.#serve();
    await end;
  }

  /**
   * Gives up what the workers hold: ends those that are idle, the others behind the requests that they have. What they
   * held is free before another one takes anything.
   */
  release(): void {
    for (const worker of [...this.#workers]) {
      if (worker.borrower) worker.isReleased = true;
      else void this.#replace(worker);
    }
  }

  /** Ends all workers; nothing is lent any more. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const waiting of [...this.#waiting]) this.#forget(waiting);
    await Promise.all([...this.#workers].map((worker) => this.discard(worker)));
  }

  #serve(): void {
    for (let next = this.#next(); next; next = this.#next()) {
      this.#forget(next.waiting);
      this.#use(next.worker, next.waiting);
    }
  }

  /** Picks the next request and a worker for it; the first request starts one. */
  #next(): { worker: WorkerProcess; waiting: Waiting } | undefined {
    if (this.#waiting.length === 0 || this.#ending > 0) return undefined;
    const waiting = this.#waiting[0]!;
    const idle = this.#workers.filter(({ borrower }) => !borrower);
    const isCrowded = performance.now() - this.#crowdedAt < this.#calmMs;
    const worker =
      (isCrowded && idle.find(({ kinds }) => kinds.has(waiting.kind))) ||
      idle[0] ||
      (this.#workers.length === 0 && !this.#isPaused() ? this.#start() : undefined);
    return worker && { worker, waiting };
  }

  /** Starts a worker if it still waits after a while, and there is none that would be free if it had had a CPU. */
  #watch(waiting: Waiting): void {
    if (!this.#waiting.includes(waiting)) return;
    waiting.timer = setTimeout(() => {
      const areBusy = this.#workers.every((worker) => worker.isBusyFor(this.#maxWaitMs));
      if (this.#ending === 0 && areBusy && !this.#isPaused()) this.#start();
      this.#serve();
      this.#watch(waiting);
    }, this.#maxWaitMs);
  }

  #forget(waiting: Waiting): void {
    clearTimeout(waiting.timer);
    const index = this.#waiting.indexOf(waiting);
    if (index >= 0) this.#waiting.splice(index, 1);
  }

  /** Undefined where the machine has no room for one: who waits tries again. */
  #start(): WorkerProcess | undefined {
    this.stats.started++;
    if (this.#workers.length === 0) this.#idle.noteStart(performance.now());
    try {
      const worker: WorkerProcess = new WorkerProcess(this.#options, () => {
        this.#remove(worker);
        this.noteFailure();
        this.#serve();
      });
      this.#workers.push(worker);
      return worker;
    } catch {
      this.noteFailure();
      return undefined;
    }
  }

  #use(worker: WorkerProcess, { kind, borrow }: Waiting): void {
    clearTimeout(worker.idleTimer);
    this.#workers.splice(this.#workers.indexOf(worker), 1);
    this.#workers.unshift(worker);
    for (const { kinds } of this.#workers) kinds.delete(kind);
    worker.kinds.add(kind);
    if (this.#workers.some((other) => other !== worker && other.borrower))
      this.#crowdedAt = performance.now();
    worker.hold(true);
    worker.lend(borrow);
  }

  /** Whoever makes files that take workers down can make many: starting others must not become all that is done. */
  noteFailure(): void {
    const now = performance.now();
    this.stats.failed++;
    this.#failures = now - this.#failedAtMs > FORGIVE_MS ? 1 : this.#failures + 1;
    this.#failedAtMs = now;
    this.#pausedUntilMs = now + Math.min(FIRST_PAUSE_MS * 2 ** (this.#failures - 1), MAX_PAUSE_MS);
  }

  #isPaused(): boolean {
    return performance.now() < this.#pausedUntilMs;
  }

  #remove(worker: WorkerProcess): void {
    const index = this.#workers.indexOf(worker);
    if (index >= 0) this.#workers.splice(index, 1);
  }

  async #replace(worker: WorkerProcess): Promise<void> {
    this.#ending++;
    await this.discard(worker);
    this.#ending--;
    this.#serve();
  }
}
