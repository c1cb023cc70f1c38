/**
 * Asks the symbol worker. Each message costs both threads a quarter of a millisecond, and every interval has new
 * addresses of a dozen files: those of files that were asked for before go together.
 */
import type { WorkerClient } from '../workers/worker-client.ts';
import type { SymbolAnswer, SymbolRequest } from './symbol-service.ts';

interface Waiting {
  request: SymbolRequest;
  resolve(answer: SymbolAnswer | Promise<SymbolAnswer>): void;
  reject(error: unknown): void;
}

/** What the handler of the worker takes, and answers the first ones of. */
export type SymbolWorker = Pick<WorkerClient<SymbolRequest[], SymbolAnswer[]>, 'request'>;

export class SymbolBatches {
  readonly #worker: SymbolWorker;
  #waiting: Waiting[] = [];

  constructor(worker: SymbolWorker) {
    this.#worker = worker;
  }

  /** By itself: its file may take long, or the worker down. Rejects as the worker does. */
  async askAlone(request: SymbolRequest): Promise<SymbolAnswer> {
    const [answer] = await this.#worker.request([request]);
    return answer!;
  }

  /** With what else is asked for in this turn of the event loop. One that fails costs only itself. */
  ask(request: SymbolRequest): Promise<SymbolAnswer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ request, resolve, reject });
      // behind the promises that others wait for before they ask
      if (this.#waiting.length === 1) process.nextTick(() => void this.#send());
    });
  }

  async #send(): Promise<void> {
    let rest = this.#waiting;
    this.#waiting = [];
    try {
      while (rest.length > 0) {
        const answers = await this.#worker.request(rest.map(({ request }) => request));
        for (const [i, answer] of answers.entries()) rest[i]!.resolve(answer);
        rest = rest.slice(answers.length);
      }
    } catch (error) {
      if (rest.length === 1) rest[0]!.reject(error);
      else for (const { request, resolve } of rest) resolve(this.askAlone(request));
    }
  }
}
