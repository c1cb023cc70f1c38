/** One thread of a {@link WorkerPool}, lent to one request at a time. */
import { Worker, type WorkerOptions } from 'node:worker_threads';
import type { WorkerEnd, WorkerReply, WorkerRequest, WorkerSelf, WorkKind } from './protocol.ts';
import { readThreadCpuMs } from './thread-time.ts';

/** Three semi-spaces, of which all stay resident; nearly all that workers hold lies outside their heaps. */
const YOUNG_MB = 6;
const WALL_TO_CPU = 10;
/** For writing a few files. */
const END_MS = 1000;

export interface WorkerThreadOptions {
  /** Module of the worker, or its path. */
  url: URL;
  /** MiB of its JavaScript heap. */
  maxHeapMb: number;
  /** What it sees as `workerData`. */
  data?: unknown;
}

/** Whoever has the thread hears of it. */
export interface Borrower {
  onReply(reply: WorkerReply): void;
  /** The thread failed, and takes no more requests. */
  onFailure(message: string): void;
}

export class WorkerThread {
  /** Kinds of work whose last request it had. */
  readonly kinds = new Set<WorkKind>();
  /** It ends with the request that it has. */
  isReleased = false;
  borrower: Borrower | undefined;
  /** When it was lent, milliseconds of performance.now(), and its CPU time then. */
  #lentAtMs = 0;
  #lentCpuMs = 0;
  idleTimer: NodeJS.Timeout | undefined;
  /** See `threadId()`; undefined as long as it hasn't said it. */
  thread: number | undefined;
  /** Undefined where the system refused one. */
  readonly #worker: Worker | undefined;

  /** `onFailure`: it ended by itself, or never began; the borrower is told afterwards. */
  constructor(options: WorkerThreadOptions, onFailure: () => void) {
    const fail = (message: string): void => {
      onFailure();
      const { borrower } = this;
      this.borrower = undefined;
      borrower?.onFailure(message);
    };
    try {
      this.#worker = start(options);
    } catch (error) {
      // as where a limit on threads is reached; nobody has borrowed it yet
      setImmediate(() => fail((error as Error).message));
      return;
    }
    this.#worker.on('message', (message: WorkerReply | WorkerSelf) => {
      if ('thread' in message) this.thread = message.thread;
      else this.borrower?.onReply(message);
    });
    this.#worker.on('error', (error) => fail(error.message));
    this.#worker.on('exit', (code) => fail(`it ended with code ${code}`));
  }

  /** Calls `borrow`, whose thread it is until it is given back. */
  lend(borrow: (thread: WorkerThread) => Borrower): void {
    this.#lentAtMs = performance.now();
    this.#lentCpuMs = (this.thread && readThreadCpuMs(this.thread)) ?? 0;
    this.borrower = borrow(this);
  }

  /** Milliseconds since it was lent. */
  get lentMs(): number {
    return performance.now() - this.#lentAtMs;
  }

  /** CPU time in {@link lentMs}; undefined where it can't be known. */
  get lentCpuMs(): number | undefined {
    // it has yet to begin
    if (this.thread === undefined) return 0;
    const cpuMs = readThreadCpuMs(this.thread);
    return cpuMs === undefined ? undefined : cpuMs - this.#lentCpuMs;
  }

  /** Whether its borrower has had that much CPU time, or ten times as much time: on a busy machine both take longer. */
  isBusyFor(ms: number): boolean {
    if (!this.borrower) return false;
    return (this.lentCpuMs ?? 0) >= ms || this.lentMs >= ms * WALL_TO_CPU;
  }

  post(request: WorkerRequest): void {
    this.#worker?.postMessage(request);
  }

  /** Whether the process stays for its sake. */
  hold(holds: boolean): void {
    if (holds) this.#worker?.ref();
    else this.#worker?.unref();
  }

  /** Lets it write what later runs shall have, if it has no request; else, and after a second, it is ended at once. */
  async end(): Promise<void> {
    const worker = this.#worker;
    if (!worker || this.borrower) return this.terminate();
    clearTimeout(this.idleTimer);
    this.hold(true);
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, END_MS);
      worker.once('exit', () => {
        clearTimeout(timer);
        resolve();
      });
      worker.postMessage({ end: true } satisfies WorkerEnd);
    });
    await worker.terminate();
  }

  async terminate(): Promise<void> {
    clearTimeout(this.idleTimer);
    this.borrower = undefined;
    await this.#worker?.terminate();
  }
}

function start({ url, maxHeapMb, data }: WorkerThreadOptions): Worker {
  const options: WorkerOptions = {
    resourceLimits: { maxOldGenerationSizeMb: maxHeapMb, maxYoungGenerationSizeMb: YOUNG_MB },
    workerData: data,
  };
  return new Worker(url, options);
}
