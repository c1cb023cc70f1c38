/** One thread of a {@link WorkerPool}, lent to one request at a time. */
import { Worker, type WorkerOptions } from 'node:worker_threads';
import type { WorkerReply, WorkerRequest, WorkerSelf, WorkKind } from './protocol.ts';

/** Three semi-spaces, of which all stay resident; nearly all that workers hold lies outside their heaps. */
const YOUNG_MB = 6;

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

  post(request: WorkerRequest): void {
    this.#worker?.postMessage(request);
  }

  /** Whether the process stays for its sake. */
  hold(holds: boolean): void {
    if (holds) this.#worker?.ref();
    else this.#worker?.unref();
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
