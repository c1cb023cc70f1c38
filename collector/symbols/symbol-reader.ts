/** The process that reads symbol files: started when it is needed, ended when it is idle, or takes too long. */
import { MAX_READ_MS, ReaderProcess, readerScript } from '../workers/reader-process.ts';
import type { SymbolReply, SymbolRequest } from './symbol-worker.ts';

const IDLE_MS = 60_000;

/** The file can't be read; the message says why. */
export class SymbolError extends Error {
  override name = 'SymbolError';
}

export class SymbolReader {
  #worker: ReaderProcess | undefined;
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
    this.#endWorker();
    return Promise.resolve();
  }

  #endWorker(): void {
    clearTimeout(this.#idle);
    const worker = this.#worker;
    this.#worker = undefined;
    worker?.kill('the collector is stopping');
  }

  async #run(request: SymbolRequest): Promise<Exclude<SymbolReply, { error: string }>> {
    if (this.#isStopped) throw new SymbolError('the collector is stopping');
    clearTimeout(this.#idle);
    this.#worker ??= this.#start();
    const reply = await answerOf(this.#worker, request);
    if ('failed' in reply) {
      this.#endWorker();
      throw new SymbolError(reply.failed);
    }
    this.#worker?.child.unref();
    this.#worker?.child.channel?.unref();
    this.#idle = setTimeout(() => this.#endWorker(), IDLE_MS).unref();
    if ('error' in reply) throw new SymbolError(reply.error);
    return reply;
  }

  #start(): ReaderProcess {
    const worker = new ReaderProcess(readerScript('symbols/symbol-worker.js'), [], 'ipc');
    const forget = (): void => {
      if (this.#worker === worker) this.#worker = undefined;
    };
    // An idle one may end as well.
    worker.child.on('error', forget).on('exit', forget);
    return worker;
  }
}

type Answer = SymbolReply | { failed: string };

/** `failed`: the worker is of no more use. */
function answerOf(worker: ReaderProcess, request: SymbolRequest): Promise<Answer> {
  const { child } = worker;
  return new Promise((resolve) => {
    const timer = setTimeout(
      () => worker.kill(`it takes more than ${MAX_READ_MS / 1000} seconds`),
      MAX_READ_MS,
    );
    const onMessage = (reply: unknown): void => settle(reply as SymbolReply);
    const onError = ({ message }: Error): void => settle({ failed: message });
    const onExit = (code: number | null, signal: NodeJS.Signals | null): void =>
      settle({ failed: worker.explainEnd(code, signal) });
    const settle = (reply: Answer): void => {
      clearTimeout(timer);
      child.off('message', onMessage).off('error', onError).off('exit', onExit);
      resolve(reply);
    };
    child.once('message', onMessage).once('error', onError).once('exit', onExit);
    child.ref();
    child.channel?.ref();
    // Where it could not be started, 'error' follows.
    if (child.pid === undefined) return;
    child.send(request, (error) => {
      if (error !== null) settle({ failed: error.message });
    });
  });
}
