/** One process of a {@link WorkerPool}, lent to one request at a time, and what it may take of the machine. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import { loadNative } from '../base/native.ts';
import { takeDescriptors } from './descriptors.ts';
import { isRunnable, readPrivateBytes } from './process-use.ts';
import type { WorkerBegin, WorkerData, WorkerEnd, WorkerReply, WorkKind } from './protocol.ts';

const WALL_TO_CPU = 10;
/** For writing a few files. */
const END_MS = 1000;
/** Memory is looked at so often while there is a request; what it takes in between, the kernel's limit bounds. */
const LOOK_MS = 100;
/** A disk that is busy answers in seconds. */
const MAX_STALL_MS = 10_000;
/** Bytes kept of what Node prints when it fails. */
const MAX_LAST_WORDS = 2048;

export interface WorkerOptions {
  /** The launcher with its arguments; see confine/worker-launcher.cc. */
  command: readonly [string, ...string[]];
  /** Limit for memory that is its own alone. */
  maxBytes: number;
  /** How long it may wait for something else than a CPU, as for a file system that doesn't answer. */
  maxStallMs?: number;
  data: WorkerData;
}

/** Why a worker is of no more use. */
export interface WorkerEnding {
  reason: 'crashed' | 'memory' | 'stalled';
  message: string;
}

/** Whoever has the worker hears of it. */
export interface Borrower {
  onReply(reply: WorkerReply): void;
  /** The worker failed, and takes no more requests. */
  onFailure(ending: WorkerEnding): void;
}

export class WorkerProcess {
  /** Kinds of work whose last request it had. */
  readonly kinds = new Set<WorkKind>();
  /** It ends with the request that it has. */
  isReleased = false;
  borrower: Borrower | undefined;
  idleTimer: NodeJS.Timeout | undefined;
  readonly #options: WorkerOptions;
  readonly #onFailure: () => void;
  /** When it was lent, milliseconds of performance.now(), and its CPU time then. */
  #lentAtMs = 0;
  #lentCpuMs = 0;
  readonly #child: ChildProcess;
  /** Over which it gets descriptors; undefined once it has ended. */
  #socket: number | undefined;
  #lookTimer: NodeJS.Timeout | undefined;
  /** CPU time at the last look that found more of it, and when that was. */
  #seenCpuMs = 0;
  #seenAtMs = 0;
  #lastWords = '';
  /** Why it was ended from here. */
  #ending: WorkerEnding | undefined;
  /** It was asked to end. */
  #isEnding = false;
  #hasEnded = false;

  /** `onFailure`: it ended by itself, or never began; the borrower is told afterwards. */
  constructor(options: WorkerOptions, onFailure: () => void) {
    this.#options = options;
    this.#onFailure = onFailure;
    const [socket, itsSocket] = loadNative().socketPair();
    this.#socket = socket;
    try {
      this.#child = start(options.command, itsSocket);
    } catch (error) {
      closeSync(socket);
      throw error;
    } finally {
      closeSync(itsSocket);
    }
    this.#child.on('message', (message: WorkerReply) => this.borrower?.onReply(message));
    this.#child.on('error', (error) => this.#fail(error.message));
    this.#child.on('exit', (code, signal) => this.#fail(`it ended with ${signal ?? `code ${code}`}`));
    this.#child.stderr?.on('data', (words: Buffer) => this.#listen(words.toString()));
    this.#send({ data: options.data });
  }

  /** Undefined where none was started. */
  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Calls `borrow`, whose worker it is until it is given back. */
  lend(borrow: (worker: WorkerProcess) => Borrower): void {
    this.#lentAtMs = performance.now();
    this.#lentCpuMs = this.#cpuMs ?? 0;
    this.#seenAtMs = this.#lentAtMs;
    this.borrower = borrow(this);
    this.#lookTimer = setInterval(() => this.#look(), LOOK_MS);
  }

  /** It has no request any more. */
  giveBack(): void {
    clearInterval(this.#lookTimer);
    this.borrower = undefined;
  }

  /** Milliseconds since it was lent. */
  get lentMs(): number {
    return performance.now() - this.#lentAtMs;
  }

  /** CPU time in {@link lentMs}, of starting as well; undefined where it can't be known. */
  get lentCpuMs(): number | undefined {
    const cpuMs = this.#cpuMs;
    return cpuMs === undefined ? undefined : cpuMs - this.#lentCpuMs;
  }

  /** True if its borrower has had that much CPU time, or ten times as much wall time: on a busy machine both take longer. */
  isBusyFor(ms: number): boolean {
    if (!this.borrower) return false;
    return (this.lentCpuMs ?? 0) >= ms || this.lentMs >= ms * WALL_TO_CPU;
  }

  /** Its descriptors stay the caller's. */
  post(request: { id: number; kind: WorkKind; request: unknown }): void {
    const fds: number[] = [];
    const body = takeDescriptors(request.request, fds);
    try {
      if (fds.length > 0 && this.#socket !== undefined) loadNative().sendDescriptors(this.#socket, fds);
    } catch (error) {
      // closed meanwhile, or too many are under way: it would wait for them
      this.#end({ reason: 'crashed', message: (error as Error).message });
      return;
    }
    this.#send({ ...request, request: body, descriptors: fds.length });
  }

  /** Keeps this process alive for its sake, or not. */
  hold(holds: boolean): void {
    const channel = this.#child.channel as { ref(): void; unref(): void } | null | undefined;
    if (holds) {
      this.#child.ref();
      channel?.ref();
    } else {
      this.#child.unref();
      channel?.unref();
    }
  }

  /** Lets it write what later runs shall have, if it has no request; else, and after a second, it is ended at once. */
  async end(): Promise<void> {
    if (this.#hasEnded) return;
    this.#isEnding = true;
    clearTimeout(this.idleTimer);
    const ended = new Promise<void>((resolve) => this.#child.once('exit', () => resolve()));
    this.hold(true);
    if (this.borrower) this.#child.kill('SIGKILL');
    else this.#send({ end: true } satisfies WorkerEnd);
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), END_MS);
    this.giveBack();
    await ended;
    clearTimeout(timer);
  }

  get #cpuMs(): number | undefined {
    const micros = this.pid === undefined ? undefined : loadNative().processCpuMicros(this.pid);
    return micros === undefined ? undefined : Math.round(micros / 1000);
  }

  #send(message: WorkerBegin | WorkerEnd | object): void {
    // what it did not get its end shows
    if (this.#child.connected) this.#child.send(message as object, () => {});
  }

  #look(): void {
    const { pid } = this;
    const privateBytes = pid === undefined ? undefined : readPrivateBytes(pid);
    if (pid === undefined || privateBytes === undefined) return;
    const { maxBytes, maxStallMs = MAX_STALL_MS } = this.#options;
    const stalledMs = this.#stalledMs(pid);
    if (privateBytes > maxBytes)
      this.#end({
        reason: 'memory',
        message: `${toMib(privateBytes)} MiB of memory; ${toMib(maxBytes)} are allowed`,
      });
    else if (stalledMs > maxStallMs)
      this.#end({ reason: 'stalled', message: `it has waited for ${Math.round(stalledMs)} ms` });
  }

  /** How long it has been waiting for something else than a CPU. */
  #stalledMs(pid: number): number {
    const cpuMs = this.#cpuMs ?? 0;
    const now = performance.now();
    if (cpuMs !== this.#seenCpuMs || isRunnable(pid)) this.#seenAtMs = now;
    this.#seenCpuMs = cpuMs;
    return now - this.#seenAtMs;
  }

  /** At once. */
  #end(ending: WorkerEnding): void {
    this.#ending ??= ending;
    this.#child.kill('SIGKILL');
  }

  #listen(words: string): void {
    this.#lastWords = (this.#lastWords + words).slice(-MAX_LAST_WORDS);
  }

  #fail(message: string): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    clearTimeout(this.idleTimer);
    if (this.#socket !== undefined) closeSync(this.#socket);
    this.#socket = undefined;
    const { borrower } = this;
    this.giveBack();
    if (!this.#isEnding) this.#onFailure();
    borrower?.onFailure(this.#ending ?? endingOf(message, this.#lastWords));
  }
}

const toMib = (bytes: number): number => Math.round(bytes / 2 ** 20);

/** V8 aborts where it gets no memory; the launcher says which of its steps failed. */
function endingOf(message: string, lastWords: string): WorkerEnding {
  const fatal = /(?:FATAL ERROR|Fatal [^:]*): ?([^\n]*)/i.exec(lastWords)?.[1];
  const isMemory = fatal !== undefined && /memory|heap limit|allocation failed/i.test(fatal);
  const words = fatal ?? /^(?:\w*Error\b|worker-launcher: ).*/m.exec(lastWords)?.[0];
  return { reason: isMemory ? 'memory' : 'crashed', message: words ? `${message}: ${words}` : message };
}

function start([file, ...args]: readonly [string, ...string[]], socket: number): ChildProcess {
  const { MALLOC_ARENA_MAX, MALLOC_TRIM_THRESHOLD_, LD_LIBRARY_PATH } = process.env;
  return spawn(file, args, {
    // not NODE_OPTIONS and the like; nor where it was started, where a worker may not be able to go
    env: { MALLOC_ARENA_MAX, MALLOC_TRIM_THRESHOLD_, LD_LIBRARY_PATH },
    cwd: '/',
    stdio: ['ignore', 'ignore', 'pipe', 'ipc', socket],
    serialization: 'advanced',
  });
}
