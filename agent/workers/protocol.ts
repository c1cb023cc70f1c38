/**
 * What the agent and its worker threads say to each other. A worker says { thread } before all else, so that its CPU
 * time can be read. Then it gets { id, kind, request }, one at a time, and answers { id, answer } or { id, error }, and
 * before that any number of { id, note }. { end } is the last that it gets, between two requests: it ends by itself.
 */

/** What workers do: make unwind tables, name native code, find the sources of scripts. */
export type WorkKind = 'table' | 'symbols' | 'source-map';

export interface WorkerRequest {
  id: number;
  kind: WorkKind;
  request: unknown;
}

export interface WorkerEnd {
  end: true;
}

export type WorkerReply =
  | { id: number; answer: unknown }
  | { id: number; error: string }
  /** What is known before the answer is. */
  | { id: number; note: unknown };

/** What it says of itself. */
export interface WorkerSelf {
  /** See `threadId()`. */
  thread: number;
}

/** Of all kinds, as each worker gets it when it starts. */
export interface WorkerData {
  /** Directory where tables and names are kept for later runs. */
  cache: string | undefined;
  /** How much is told of native code. */
  detail: 'full' | 'names';
  /** Of the agent, in bytes: what a compressed section may take of it. */
  maxMemory: number;
}

/** Does one kind of work, in a worker. What it throws is the answer to the request. */
export interface WorkHandler<Request = never, Answer = unknown, Note = unknown> {
  handle(request: Request, tell: (note: Note) => void): Answer | Promise<Answer>;
  /** What of an answer is handed over instead of copied. */
  transfer?(answer: Answer): ArrayBuffer[];
  /** The thread ends: what later runs shall have is written now. */
  end?(): void;
}
