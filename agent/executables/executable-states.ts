import type { FileKey } from '../../common/base/brand.ts';
import type { FilePenalties } from '../workers/file-penalties.ts';
import type { WorkerFailure } from '../workers/worker-failure.ts';
import type { Executable } from './files/executable.ts';
import type { OpenFailure } from './files/open-file.ts';
import { ForgetQueue } from './forget-queue.ts';
import type { TableSink } from './table-sink.ts';

const MAX_FORGETS_WAITING = 4096;
const MAX_RETRY_MS = 60_000;

type Failure = OpenFailure | 'overloaded' | 'thrashing' | 'truncated' | 'worker';

export interface ExecutableStatesOptions {
  tables: Pick<TableSink, 'markNoTable' | 'markMemory' | 'forget'>;
  penalties: FilePenalties;
  /** First wait before BPF may report a file again that could not be opened; doubles up to a minute. */
  retryMs: number;
  /** False of an executable that was dropped meanwhile. */
  isCurrent: (executable: Executable) => boolean;
}

/** The states of executables that have no table: given up for good, or until BPF reports them again after a while. */
export class ExecutableStates {
  readonly failures = {
    gone: 0,
    changed: 0,
    denied: 0,
    unanswered: 0,
    'not-regular': 0,
    failed: 0,
    overloaded: 0,
    thrashing: 0,
    truncated: 0,
    /** Files that took their worker down, or too long. */
    worker: 0,
  } satisfies Record<Failure, number>;
  readonly #options: ExecutableStatesOptions;
  readonly #forgets = new ForgetQueue((key) => this.forget(key), MAX_FORGETS_WAITING);
  #stopped = false;

  constructor(options: ExecutableStatesOptions) {
    this.#options = options;
  }

  /** Gives up for good: the file will not get any better. */
  giveUp(executable: Executable, state: 'no-table' | 'not-elf', reason: string): void {
    const { tables } = this.#options;
    executable.state = state;
    executable.reason = reason;
    // Memory that processes share or map twice (a memfd, /dev/zero, System V) is a file in no folder. JITs that never
    // have it writable and executable at one address put their code there; a memfd may be a program, too.
    if (state === 'not-elf' && executable.path === '') tables.markMemory(executable.key);
    else tables.markNoTable(executable.key);
  }

  /** Gives up for now: BPF reports the file again, and the next process that maps it may still be there. */
  fail(executable: Executable, failure: Failure, reason: string): void {
    this.failures[failure]++;
    executable.state = 'failed';
    executable.reason = reason;
    const delayMs = Math.min(this.#options.retryMs * 2 ** executable.failures, MAX_RETRY_MS);
    executable.failures++;
    if (this.#mayChange(executable)) this.#forgets.add(executable.key, delayMs);
  }

  /** The file took its worker down. It is not tried again for a while; until then its code is unwound without rules. */
  penalise(executable: Executable, failure: WorkerFailure): void {
    const { key, path } = executable;
    if (!this.#mayChange(executable)) return;
    this.failures.worker++;
    this.giveUp(executable, 'no-table', failure.message);
    this.#forgets.add(
      key,
      this.#options.penalties.note({ key, path, lacks: 'stacks through it may be cut' }, failure),
    );
  }

  /** BPF has reported it again: nothing to wait for any more. */
  isReported(key: FileKey): void {
    this.#forgets.delete(key);
  }

  /** BPF reports the file again when it next meets it. */
  forget(key: FileKey): void {
    void (async () => this.#options.tables.forget(key))().catch(() => {});
  }

  stop(): void {
    this.#stopped = true;
    this.#forgets.stop();
  }

  #mayChange(executable: Executable): boolean {
    return !this.#stopped && this.#options.isCurrent(executable);
  }
}
