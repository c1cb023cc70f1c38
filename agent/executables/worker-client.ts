/**
 * One worker thread for one kind of work: started by the first request, ended when idle. Requests run one at a
 * time in the order they came, so that a request that takes the worker down is known by name, and costs only
 * itself. The protocol: post { id, request }, answer { id, answer } or { id, error }, and before that any number of
 * { id, note }; before all else the worker says { thread }, so that its CPU time can be read.
 */
import { Worker, type WorkerOptions } from 'node:worker_threads';
import { readThreadCpuMs } from './thread-time.ts';

/** The worker ended, or took too long, while it had this request. */
export class WorkerFailure extends Error {
  override readonly name = 'WorkerFailure';
  readonly reason: 'crashed' | 'timeout' | 'stopped';

  constructor(reason: 'crashed' | 'timeout' | 'stopped', message: string) {
    super(message);
    this.reason = reason;
  }
}

/** The request itself failed; the worker lives on. */
export class RequestError extends Error {
  override readonly name = 'RequestError';
}

/** Three semi-spaces, of which all stay resident; nearly all that workers hold lies outside their heaps. */
const YOUNG_MB = 6;
const MIN_WAIT_MS = 20;

export interface WorkerClientOptions {
  /** Module of the worker, or its path. */
  url: URL;
  idleMs: number;
  /** CPU time that a request may take. */
  maxCpuMs: number;
  /** Wall time: more, since others have the CPUs too, or a slow disk its file. */
  maxWaitMs: number;
  /** MiB of its JavaScript heap. */
  maxHeapMb: number;
  /** What the worker sees as `workerData`. */
  data?: unknown;
}

export type WorkerReply<Answer, Note = never> =
  | { id: number; answer: Answer }
  | { id: number; error: string }
  /** What is known before the answer is. */
  | { id: number; note: Note };

/** What a worker says of itself when it starts: its {@link threadId}. */
export interface WorkerThread {
  thread: number;
}

interface Pending<Request, Answer, Note> {
  request: Request;
  onNote: ((note: Note) => void) | undefined;
  resolve(answer: Answer): void;
  reject(error: Error): void;
}

interface Running<Request, Answer, Note> extends Pending<Request, Answer, Note> {
  id: number;
  /** `performance.now()` when the worker got it, and the CPU time that its thread had had by then. */
  startMs: number;
  startCpuMs: number;
}

export class WorkerClient<Request, Answer, Note = never> {
  readonly stats = {
    started: 0,
    requests: 0,
    crashed: 0,
    timeouts: 0,
    /** CPU time of requests, and that of the one that took most; without those that took the worker down. */
    cpuMs: 0,
    slowestCpuMs: 0,
  };
  readonly #options: WorkerClientOptions;
  readonly #queue: Pending<Request, Answer, Note>[] = [];
  #worker: Worker | undefined;
  /** Of its thread; 0 where it isn't known, undefined as long as the worker hasn't said it. */
  #thread: number | undefined;
  #current: Running<Request, Answer, Note> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #nextId = 1;
  #isStopped = false;
  /** It ends with the request that it has. */
  #isReleased = false;
  #isEnding = false;

  constructor(options: WorkerClientOptions) {
    this.#options = options;
  }

  /** Waiting and running. */
  get pending(): number {
    return this.#queue.length + (this.#current ? 1 : 0);
  }

  /** Whether there is a worker thread now. */
  get isRunning(): boolean {
    return this.#worker !== undefined;
  }

  /** Rejects with {@link WorkerFailure} or {@link RequestError}. */
  request(request: Request, onNote?: (note: Note) => void): Promise<Answer> {
    if (this.#isStopped) return Promise.reject(stopped());
    this.stats.requests++;
    return new Promise((resolve, reject) => {
      this.#queue.push({ request, onNote, resolve, reject });
      this.#next();
    });
  }

  /** Ends the worker, behind the request that it has; the next request starts another one. */
  release(): void {
    if (this.#current) this.#isReleased = true;
    else void this.#replace();
  }

  /** Ends the worker; what waits is rejected, and what comes later. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    const waiting = this.#queue.splice(0);
    if (this.#current) waiting.unshift(this.#current);
    this.#current = undefined;
    for (const { reject } of waiting) reject(stopped());
    await this.#terminate();
  }

  #next(): void {
    if (this.#current || this.#isEnding) return;
    clearTimeout(this.#timer);
    const pending = this.#queue.shift();
    if (!pending) {
      this.#worker?.unref();
      this.#timer = setTimeout(() => void this.#terminate(), this.#options.idleMs).unref();
      return;
    }
    const worker = this.#worker ?? this.#start();
    const startCpuMs = readThreadCpuMs(this.#thread ?? 0) ?? 0;
    this.#current = { ...pending, id: this.#nextId++, startMs: performance.now(), startCpuMs };
    this.#timer = setTimeout(() => this.#checkTime(), this.#options.maxCpuMs);
    worker.ref();
    worker.postMessage({ id: this.#current.id, request: pending.request });
  }

  #start(): Worker {
    const options: WorkerOptions = {
      resourceLimits: {
        maxOldGenerationSizeMb: this.#options.maxHeapMb,
        maxYoungGenerationSizeMb: YOUNG_MB,
      },
      workerData: this.#options.data,
    };
    const worker = new Worker(this.#options.url, options);
    this.#worker = worker;
    this.#thread = undefined;
    this.stats.started++;
    worker.on('message', (message: WorkerReply<Answer, Note> | WorkerThread) => {
      if (worker !== this.#worker) return;
      if ('thread' in message) this.#thread = message.thread;
      else this.#receive(message);
    });
    worker.on('error', (error) => this.#crash(worker, error.message));
    worker.on('exit', (code) => this.#crash(worker, `it ended with code ${code}`));
    return worker;
  }

  #receive(reply: WorkerReply<Answer, Note>): void {
    const current = this.#current;
    if (!current || reply.id !== current.id) return;
    if ('note' in reply) {
      current.onNote?.(reply.note);
      return;
    }
    this.#noteTime(current);
    this.#current = undefined;
    if ('error' in reply) current.reject(new RequestError(reply.error));
    else current.resolve(reply.answer);
    if (this.#isReleased) void this.#replace();
    else this.#next();
  }

  #crash(worker: Worker, message: string): void {
    if (worker !== this.#worker) return;
    this.#worker = undefined;
    this.#isReleased = false;
    this.stats.crashed++;
    this.#fail(new WorkerFailure('crashed', `a worker thread failed: ${message}`));
  }

  #checkTime(): void {
    const current = this.#current;
    if (!current) return;
    const { maxCpuMs, maxWaitMs } = this.#options;
    const waitedMs = performance.now() - current.startMs;
    const cpuMs = this.#cpuTimeOf(current) ?? waitedMs;
    const leftMs = Math.min(maxCpuMs - cpuMs, maxWaitMs - waitedMs);
    if (leftMs > 0) this.#timer = setTimeout(() => this.#checkTime(), Math.max(leftMs, MIN_WAIT_MS));
    else
      this.#expire(
        `${Math.round(cpuMs)} ms of CPU time in ${Math.round(waitedMs)} ms; ${maxCpuMs} in ${maxWaitMs} are allowed`,
      );
  }

  /** Undefined where it can't be known. */
  #cpuTimeOf({ startCpuMs }: Running<Request, Answer, Note>): number | undefined {
    // it has yet to begin
    if (this.#thread === undefined) return 0;
    const cpuMs = readThreadCpuMs(this.#thread);
    return cpuMs === undefined ? undefined : cpuMs - startCpuMs;
  }

  #noteTime(request: Running<Request, Answer, Note>): void {
    const cpuMs = this.#cpuTimeOf(request) ?? 0;
    this.stats.cpuMs += cpuMs;
    this.stats.slowestCpuMs = Math.max(this.stats.slowestCpuMs, cpuMs);
  }

  #expire(time: string): void {
    this.stats.timeouts++;
    if (this.#current) this.#noteTime(this.#current);
    const message = `a worker thread took ${time}`;
    void this.#terminate();
    this.#fail(new WorkerFailure('timeout', message));
  }

  #fail(error: WorkerFailure): void {
    const current = this.#current;
    this.#current = undefined;
    current?.reject(error);
    this.#next();
  }

  /** What the old worker holds is free before the next one takes anything. */
  async #replace(): Promise<void> {
    this.#isEnding = true;
    await this.#terminate();
    this.#isEnding = false;
    this.#next();
  }

  async #terminate(): Promise<void> {
    clearTimeout(this.#timer);
    this.#isReleased = false;
    const worker = this.#worker;
    this.#worker = undefined;
    await worker?.terminate();
  }
}

const stopped = (): WorkerFailure => new WorkerFailure('stopped', 'the worker was stopped');
