/**
 * What the agent and its workers, each a process, say to each other over Node's channel between the two. { data } is the
 * first that a worker gets. Then come { id, kind, request }, one at a time, of whose descriptors a worker gets its own
 * (descriptors.ts); it answers { id, answer } or { id, error }, and before that any number of { id, note }. { end } is
 * the last, between two requests: it ends by itself.
 */

/** Kinds of work: make unwind tables, name native code, find the sources of scripts, lines of assemblies, places for probes, and variables of threads; and, when the product is built, own-code.ts. */
export type WorkKind = 'table' | 'symbols' | 'source-map' | 'pdb' | 'probes' | 'thread-local' | 'own-code';

export interface WorkerRequest {
  id: number;
  kind: WorkKind;
  request: unknown;
  /** Descriptors that come with it, over a socket of their own. */
  descriptors: number;
}

export interface WorkerBegin {
  data: WorkerData;
}

export interface WorkerEnd {
  end: true;
}

export type WorkerReply =
  | { id: number; answer: unknown }
  | { id: number; error: string }
  /** A note that comes before the answer. */
  | { id: number; note: unknown };

/** Settings of all kinds of work, as each worker gets them when it starts. */
export interface WorkerData {
  /** Directory where tables and names are kept for later runs. */
  cache: string | undefined;
  /** Directory on a disk for files without names. */
  scratch: string | undefined;
  /** How much is told of native code. */
  detail: 'full' | 'names';
  /** The agent's limit in bytes, of which a compressed section may take a share. */
  maxMemory: number;
  /** Version of the product. */
  version: string;
}

/** Does one kind of work, in a worker. What it throws is the answer to the request, whose descriptors it may not keep. */
export interface WorkHandler<Request = never, Answer = unknown, Note = unknown> {
  handle(request: Request, tell: (note: Note) => void): Answer | Promise<Answer>;
  /** The worker ends: what later runs shall have is written now. */
  end?(): void;
}
