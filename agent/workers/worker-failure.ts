import type { WorkerEnding } from './worker-process.ts';

export type FailureReason = WorkerEnding['reason'] | 'timeout' | 'stopped';

/** The worker ended, or took too long, while it had this request. */
export class WorkerFailure extends Error {
  override readonly name = 'WorkerFailure';
  readonly reason: FailureReason;

  constructor(reason: FailureReason, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** The request itself failed; the worker lives on. */
export class RequestError extends Error {
  override readonly name = 'RequestError';
}
