/**
 * Looks for the contexts of the processes that are sampled, and for changes of those: an SDK starts after its program, some
 * minutes after it. What is found becomes `service.name` and attributes of the process, of its samples that go out from then on.
 */
import { uptime } from 'node:os';
import type { Pid } from '../../common/base/brand.ts';
import type { ProcessIdentity } from '../records/records.ts';
import type { ForeignFiles } from './foreign-files.ts';
import { BadContext, findContext, type ProcessContext, readContext } from './process-context.ts';
import type { ProcessManager } from './process-manager.ts';

/** What is told of threads in the contexts of processes. */
export interface ContextSink {
  /** The process has published a context, or another one. */
  onContext(process: ProcessIdentity, context: ProcessContext): void;
  /** It has ended, or called exec. */
  onExit(process: Pick<ProcessIdentity, 'pid'>): void;
}

interface Watched {
  identity: ProcessIdentity;
  nextMs: number;
  waitMs: number;
  /** Of the context that it has. */
  address: number | undefined;
  publishedNs: bigint;
}

const TICK_MS = 250;
/** Reading a list of mappings costs 0.2 ms. */
const MAX_LOOKS_A_TICK = 25;
const MAX_WATCHED = 8192;
/** A younger process has hardly begun, and most of those end soon. */
const MIN_AGE_MS = 2000;
const FIRST_WAIT_MS = 1000;
const WAIT_FACTOR = 4;
const LAST_WAIT_MS = 300_000;
/** Of a context that is there only the time of publishing is read. */
const CHANGE_WAIT_MS = 10_000;
const NS_A_MS = 1e6;

export class ProcessContexts {
  readonly stats = {
    /** Looks for one, contexts that were read, changed ones included, and such as are not as specified. */
    contextLooks: 0,
    contextsRead: 0,
    contextsInvalid: 0,
    /** Processes that are not watched, because too many are. */
    contextsLeftOut: 0,
  };
  readonly #files: ForeignFiles;
  readonly #processes: ProcessManager;
  readonly #threads: ContextSink;
  readonly #watched = new Map<Pid, Watched>();
  readonly #bootMs = uptime() * 1000 - performance.now();
  #timer: NodeJS.Timeout | undefined;

  constructor(files: ForeignFiles, processes: ProcessManager, threads: ContextSink) {
    this.#files = files;
    this.#processes = processes;
    this.#threads = threads;
  }

  start(): void {
    this.#timer = setTimeout(
      () => void this.#tick().finally(() => this.#timer && this.start()),
      TICK_MS,
    ).unref();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** It was sampled for the first time, or has called exec. */
  onProcess(identity: ProcessIdentity): void {
    this.onExit(identity);
    if (this.#watched.size >= MAX_WATCHED) {
      this.stats.contextsLeftOut++;
      return;
    }
    const now = performance.now();
    const ageMs = this.#bootMs + now - Number(identity.startBoottimeNs) / NS_A_MS;
    const nextMs = ageMs > MIN_AGE_MS ? now : now + FIRST_WAIT_MS;
    this.#watched.set(identity.pid, {
      ...{ identity, nextMs, waitMs: FIRST_WAIT_MS },
      ...{ address: undefined, publishedNs: 0n },
    });
  }

  onExit(process: ProcessIdentity): void {
    this.#watched.delete(process.pid);
    this.#threads.onExit(process);
  }

  async #tick(): Promise<void> {
    const now = performance.now();
    let looks = 0;
    for (const [pid, watched] of this.#watched) {
      // what is read from now on would start a reader that nobody ends
      if (!this.#timer) return;
      if (watched.nextMs > now) continue;
      if (looks++ >= MAX_LOOKS_A_TICK) break;
      await this.#look(pid, watched);
      watched.nextMs = performance.now() + (watched.address === undefined ? watched.waitMs : CHANGE_WAIT_MS);
      watched.waitMs = Math.min(watched.waitMs * WAIT_FACTOR, LAST_WAIT_MS);
    }
  }

  async #look(pid: Pid, watched: Watched): Promise<void> {
    this.stats.contextLooks++;
    try {
      watched.address ??= await findContext(pid, this.#files);
      if (watched.address === undefined) return;
      const context = await readContext(pid, watched.address, this.#files, watched.publishedNs);
      if (!context || this.#watched.get(pid) !== watched) return;
      watched.publishedNs = context.publishedNs;
      this.stats.contextsRead++;
      this.#processes.noteResource(watched.identity, context.resource);
      this.#threads.onContext(watched.identity, context);
    } catch (error) {
      if (!(error instanceof BadContext)) throw error;
      this.stats.contextsInvalid++;
      watched.address = undefined;
    }
  }
}
