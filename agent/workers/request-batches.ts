/**
 * Requests of one kind that are asked for together, or while others are under way. Each message costs both threads a quarter of a millisecond, and each
 * interval has new addresses of a dozen files, at first a hundred scripts. A worker answers the first ones of a message
 * (see `answerFirst()`), so that what others ask of its thread does not wait for all.
 */
import type { WorkerClient } from './worker-client.ts';

interface Waiting<Request, Answer> {
  request: Request;
  resolve(answer: Answer | Promise<Answer>): void;
  reject(error: unknown): void;
}

type BatchWorker<Request, Answer> = Pick<WorkerClient<Request[], Answer[]>, 'request'>;

export class RequestBatches<Request, Answer> {
  readonly #worker: BatchWorker<Request, Answer>;
  #waiting: Waiting<Request, Answer>[] = [];
  /** A message is to be sent, or is not answered yet. */
  #isSending = false;

  constructor(worker: BatchWorker<Request, Answer>) {
    this.#worker = worker;
  }

  /** By itself: it may take long, or the worker down. Rejects as the worker does. */
  async askAlone(request: Request): Promise<Answer> {
    const [answer] = await this.#worker.request([request]);
    return answer!;
  }

  /** With what else is asked for until the message before it is answered. One that fails costs only itself. */
  ask(request: Request): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ request, resolve, reject });
      if (this.#isSending) return;
      this.#isSending = true;
      // behind the promises that others wait for before they ask
      process.nextTick(() => void this.#sendAll());
    });
  }

  async #sendAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      await this.#send(batch);
    }
    this.#isSending = false;
  }

  async #send(batch: Waiting<Request, Answer>[]): Promise<void> {
    let rest = batch;
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
