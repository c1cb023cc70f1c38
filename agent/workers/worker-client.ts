/**
 * One kind of work that the workers of a {@link WorkerPool} do. Requests run one at a time in the order they came, so
 * that a request that takes its worker down is known by name, and costs only itself.
 */

import type { WorkerReply, WorkKind } from './protocol.ts';
import { RequestError, WorkerFailure } from './worker-failure.ts';
import type { WorkerPool } from './worker-pool.ts';
import type { Borrower, WorkerEnding, WorkerProcess } from './worker-process.ts';

const MIN_WAIT_MS = 20;

export interface WorkerClientOptions {
  kind: WorkKind;
  /** CPU time that a request may take. */
  maxCpuMs: number;
  /** Wall time: more, since others have the CPUs too, or a slow disk its file. */
  maxWaitMs: number;
}

interface Pending<Request, Answer, Note> {
  request: Request;
  onNote: ((note: Note) => void) | undefined;
  resolve(answer: Answer): void;
  reject(error: Error): void;
}

interface Running<Request, Answer, Note> extends Pending<Request, Answer, Note> {
  id: number;
  worker: WorkerProcess;
}

export class WorkerClient<Request, Answer, Note = never> {
  readonly stats = {
    requests: 0,
    crashed: 0,
    timeouts: 0,
    /** CPU time of requests, and that of the one that took most; without those that took the worker down. */
    cpuMs: 0,
    slowestCpuMs: 0,
  };
  readonly #pool: WorkerPool;
  readonly #options: WorkerClientOptions;
  readonly #queue: Pending<Request, Answer, Note>[] = [];
  #current: Running<Request, Answer, Note> | undefined;
  /** Takes back that a worker was asked for. */
  #cancel: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #nextId = 1;
  #isStopped = false;

  constructor(pool: WorkerPool, options: WorkerClientOptions) {
    this.#pool = pool;
    this.#options = options;
  }

  /** Waiting and running. */
  get pending(): number {
    return this.#queue.length + (this.#current ? 1 : 0);
  }

  /** Rejects with {@link WorkerFailure} or {@link RequestError}. */
  request(request: Request, onNote?: (note: Note) => void): Promise<Answer> {
    if (this.#isStopped) return Promise.reject(stopped());
    this.stats.requests++;
    return new Promise((resolve, reject) => {
      this.#queue.push({ request, onNote, resolve, reject });
      if (this.pending === 1) this.#next();
    });
  }

  /** Ends the worker that has a request; what waits is rejected, and what comes later. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancel?.();
    clearTimeout(this.#timer);
    const current = this.#current;
    this.#current = undefined;
    current?.reject(stopped());
    for (const { reject } of this.#queue.splice(0)) reject(stopped());
    if (current) await this.#pool.discard(current.worker);
  }

  #next(): void {
    if (this.#queue.length === 0 || this.#isStopped) return;
    this.#cancel = this.#pool.lend(this.#options.kind, (worker) => this.#run(worker, this.#queue.shift()!));
  }

  #run(worker: WorkerProcess, pending: Pending<Request, Answer, Note>): Borrower {
    const { kind, maxCpuMs } = this.#options;
    const id = this.#nextId++;
    this.#current = { ...pending, id, worker };
    this.#timer = setTimeout(() => this.#checkTime(), maxCpuMs);
    worker.post({ id, kind, request: pending.request });
    return { onReply: (reply) => this.#receive(reply), onFailure: (ending) => this.#crash(ending) };
  }

  #receive(reply: WorkerReply): void {
    const current = this.#current;
    if (!current || reply.id !== current.id) return;
    if ('note' in reply) {
      current.onNote?.(reply.note as Note);
      return;
    }
    this.#noteTime(current);
    this.#settle();
    if ('error' in reply) current.reject(new RequestError(reply.error));
    else current.resolve(reply.answer as Answer);
    this.#pool.giveBack(current.worker);
    this.#next();
  }

  #crash({ reason, message }: WorkerEnding): void {
    this.stats.crashed++;
    this.#fail(new WorkerFailure(reason, `a worker failed: ${message}`));
  }

  #checkTime(): void {
    const current = this.#current;
    if (!current) return;
    const { maxCpuMs, maxWaitMs } = this.#options;
    const waitedMs = current.worker.lentMs;
    const cpuMs = current.worker.lentCpuMs ?? waitedMs;
    const leftMs = Math.min(maxCpuMs - cpuMs, maxWaitMs - waitedMs);
    if (leftMs > 0) this.#timer = setTimeout(() => this.#checkTime(), Math.max(leftMs, MIN_WAIT_MS));
    else
      this.#expire(
        current,
        `${Math.round(cpuMs)} ms of CPU time in ${Math.round(waitedMs)} ms; ${maxCpuMs} in ${maxWaitMs} are allowed`,
      );
  }

  #noteTime({ worker }: Running<Request, Answer, Note>): void {
    const cpuMs = worker.lentCpuMs ?? 0;
    this.stats.cpuMs += cpuMs;
    this.stats.slowestCpuMs = Math.max(this.stats.slowestCpuMs, cpuMs);
  }

  #expire(current: Running<Request, Answer, Note>, time: string): void {
    this.stats.timeouts++;
    this.#noteTime(current);
    this.#pool.noteFailure();
    void this.#pool.discard(current.worker);
    this.#fail(new WorkerFailure('timeout', `a worker took ${time}`));
  }

  #fail(error: WorkerFailure): void {
    const current = this.#current;
    this.#settle();
    current?.reject(error);
    this.#next();
  }

  #settle(): void {
    clearTimeout(this.#timer);
    this.#current = undefined;
  }
}

const stopped = (): WorkerFailure => new WorkerFailure('stopped', 'the worker was stopped');
