/** The worker thread that reads symbol files: started when it is needed, ended when it is idle, or takes too long. */
import { Worker } from 'node:worker_threads';
import type { SymbolReply, SymbolRequest } from './symbol-worker.ts';

const MAX_READ_MS = 60_000;
const IDLE_MS = 60_000;
const MAX_HEAP_MB = 1024;

/** The file can't be read; the message says why. */
export class SymbolError extends Error {
  override name = 'SymbolError';
}

/** This file runs from dist/collector/symbols, and in tests from collector/symbols. */
const WORKER = new URL(
  import.meta.url.endsWith('.js') ? './symbol-worker.js' : '../../dist/collector/symbols/symbol-worker.js',
  import.meta.url,
);

export class SymbolReader {
  #worker: Worker | undefined;
  #idle: NodeJS.Timeout | undefined;
  /** One request at a time, so that it is known which one took the worker down. */
  #last: Promise<unknown> = Promise.resolve();
  #isStopped = false;

  /** @throws SymbolError */
  ask(request: SymbolRequest): Promise<Exclude<SymbolReply, { error: string }>> {
    const answer = this.#last.then(() => this.#run(request));
    this.#last = answer.catch(() => {});
    return answer;
  }

  /** What waits is refused, and what comes later. */
  stop(): Promise<void> {
    this.#isStopped = true;
    return this.#endWorker();
  }

  async #endWorker(): Promise<void> {
    clearTimeout(this.#idle);
    const worker = this.#worker;
    this.#worker = undefined;
    await worker?.terminate();
  }

  async #run(request: SymbolRequest): Promise<Exclude<SymbolReply, { error: string }>> {
    if (this.#isStopped) throw new SymbolError('the collector is stopping');
    clearTimeout(this.#idle);
    this.#worker ??= this.#start();
    const reply = await answerOf(this.#worker, request);
    if ('failed' in reply) {
      await this.#endWorker();
      throw new SymbolError(reply.failed);
    }
    this.#worker?.unref();
    this.#idle = setTimeout(() => void this.#endWorker(), IDLE_MS).unref();
    if ('error' in reply) throw new SymbolError(reply.error);
    return reply;
  }

  #start(): Worker {
    const worker = new Worker(WORKER, { resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB } });
    // An idle one may fail as well; without a listener that would end the process.
    worker.on('error', () => {
      if (this.#worker === worker) this.#worker = undefined;
    });
    return worker;
  }
}

/** `failed`: the worker is of no more use. */
function answerOf(worker: Worker, request: SymbolRequest): Promise<SymbolReply | { failed: string }> {
  return new Promise((resolve) => {
    const timer = setTimeout(
      () => settle({ failed: `it took more than ${MAX_READ_MS / 1000} seconds` }),
      MAX_READ_MS,
    );
    const onError = ({ message }: Error): void => settle({ failed: message });
    const onExit = (code: number): void => settle({ failed: `its reader ended with code ${code}` });
    const settle = (reply: SymbolReply | { failed: string }): void => {
      clearTimeout(timer);
      worker.off('message', settle);
      worker.off('error', onError);
      worker.off('exit', onExit);
      resolve(reply);
    };
    worker.once('message', settle);
    worker.once('error', onError);
    worker.once('exit', onExit);
    worker.ref();
    worker.postMessage(request);
  });
}
