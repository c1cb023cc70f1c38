/** Periodic work beside the samples: keeping within the limits, and giving back memory that is not used. */
import type { CpuBudget } from './limits/cpu-budget.ts';
import type { MemoryBudget } from './limits/memory-budget.ts';
import type { IdleTables } from './tracer/idle-tables.ts';
import type { Tables } from './tracer/tables.ts';

export interface MaintenanceParts {
  cpu: Pick<CpuBudget, 'check'> | undefined;
  memory: Pick<MemoryBudget, 'check'>;
  tables: Pick<Tables, 'dropIdle'>;
  idleTables: IdleTables;
  /** Gives what malloc keeps back to the system; and what was read of the program's own code, which is read again. */
  native: { releaseFreeMemory(): void; releaseCode(): void };
  /** Each second. */
  look(): void;
  warn(message: string): void;
}

const LOOK_MS = 1000;
const TABLE_SWEEP_MS = 30_000;
/** Parsing leaves much that is free, in the first seconds most of all. */
const RELEASE_MEMORY_MS = 10_000;
/** The first time; four times as long after each time, since less and less is left that only starting needed. */
const RELEASE_CODE_MS = 10_000;
const MAX_RELEASE_CODE_MS = 600_000;

export class Maintenance {
  readonly #parts: MaintenanceParts;
  #timer: NodeJS.Timeout | undefined;
  #sweptAtMs = performance.now();
  #releasedAtMs = performance.now();
  #releasedCodeAtMs = performance.now();
  #releaseCodeWaitMs = RELEASE_CODE_MS;
  #isShrinking = false;
  /** The sweep of tables that is under way: one at a time. */
  #sweep: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(parts: MaintenanceParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#timer = setInterval(() => this.#look(), LOOK_MS).unref();
  }

  /** Does what is due after an interval, when little else is done. */
  afterInterval(): void {
    this.#sweepTables();
    this.#releaseMemory();
  }

  stop(): void {
    this.#isStopped = true;
    clearInterval(this.#timer);
  }

  /** Resolves when nothing is under way any more. */
  settled(): Promise<void> {
    return this.#sweep;
  }

  #look(): void {
    if (this.#isStopped) return;
    this.#parts.cpu?.check();
    this.#parts.look();
    this.#keepMemory();
  }

  /** Caches go at once, tables beside the intervals, as in {@link #sweepTables}; not before the last ones are gone. */
  #keepMemory(): void {
    if (this.#isShrinking) return;
    this.#isShrinking = true;
    const check = this.#parts.memory
      .check()
      .catch((error: Error) => this.#parts.warn(`memory can't be given up: ${error.message}`))
      .finally(() => {
        this.#isShrinking = false;
      });
    this.#sweep = this.#sweep.then(() => check);
  }

  /** Beside the intervals: each table that goes waits for a grace period of the kernel. */
  #sweepTables(): void {
    if (this.#isStopped || performance.now() - this.#sweptAtMs < TABLE_SWEEP_MS) return;
    this.#sweptAtMs = performance.now();
    const { tables, idleTables, warn } = this.#parts;
    this.#sweep = this.#sweep
      .then(() => tables.dropIdle(idleTables, () => this.#isStopped))
      .catch((error: Error) => warn(`tables that are not used can't be dropped: ${error.message}`));
  }

  #releaseMemory(): void {
    const { native } = this.#parts;
    if (performance.now() - this.#releasedAtMs < RELEASE_MEMORY_MS) return;
    this.#releasedAtMs = performance.now();
    native.releaseFreeMemory();
    if (performance.now() - this.#releasedCodeAtMs < this.#releaseCodeWaitMs) return;
    this.#releasedCodeAtMs = performance.now();
    this.#releaseCodeWaitMs = Math.min(this.#releaseCodeWaitMs * 4, MAX_RELEASE_CODE_MS);
    native.releaseCode();
  }
}
