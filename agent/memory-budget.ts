/**
 * Keeps the agent inside `--max-memory`: its resident memory and its BPF maps together. What can be made again goes
 * first, a step further at each interval that finds it too large: what malloc keeps free, caches of names and traces,
 * unwind tables by least use. A process smaller than what the agent needs to run at all can't be had: that is said.
 */

/** What can be given up, each bounded and made again when it is needed. */
export interface Reclaimable {
  /** Resident memory of the process, bytes. */
  residentBytes(): number;
  /** Kernel memory of the BPF maps, the unwind tables included, bytes. */
  mapBytes(): number;
  releaseFreeMemory(): void;
  /** Drops caches that the main thread and the workers fill. */
  dropCaches(): void;
  /** Unwind tables, bytes. */
  tableBytes(): number;
  /** What the tables may take from now on, bytes; those beyond it leave. */
  limitTables(bytes: number): Promise<void>;
}

/** Of the budget, for tables in any case: with less they would push each other out. */
const LEAST_TABLES = 1 / 16;
/** Of the budget: from there on something is given up, since more comes before that has effect. */
export const TARGET = 0.9;
/** Tables grow again below this share of the budget, by so much at each interval. */
const ROOMY = 0.75;
const GROWTH = 1.25;

export class MemoryBudget {
  readonly #maxBytes: number;
  readonly #parts: Reclaimable;
  readonly #maxTableBytes: number;
  readonly #warn: (message: string) => void;
  #tableLimit: number;
  #turns = 0;
  #hasWarned = false;
  readonly stats = {
    budgetBytes: 0,
    usedBytes: 0,
    /** Intervals that ended above the budget. */
    intervalsOver: 0,
    cachesDropped: 0,
    tablesLimited: 0,
  };

  constructor(
    limits: { maxBytes: number; maxTableBytes: number },
    parts: Reclaimable,
    warn: (message: string) => void,
  ) {
    this.#maxBytes = limits.maxBytes;
    this.#maxTableBytes = limits.maxTableBytes;
    this.#tableLimit = limits.maxTableBytes;
    this.#parts = parts;
    this.#warn = warn;
    this.stats.budgetBytes = limits.maxBytes;
  }

  /** At the end of each interval. */
  async check(): Promise<void> {
    if (this.#excess() <= 0) {
      this.#turns = 0;
      await this.#letTablesGrow();
      return;
    }
    this.#parts.releaseFreeMemory();
    const excess = this.#excess();
    if (excess <= 0) return;
    if (this.stats.usedBytes > this.#maxBytes) this.stats.intervalsOver++;
    this.#turns++;
    // what has just been dropped is free at the next collection of garbage only: it gets an interval's time
    if (this.#turns % 2 === 1) this.#dropCaches();
    else await this.#shrinkTables(excess);
  }

  /** Bytes above the target. */
  #excess(): number {
    this.stats.usedBytes = this.#parts.residentBytes() + this.#parts.mapBytes();
    return this.stats.usedBytes - this.#maxBytes * TARGET;
  }

  #dropCaches(): void {
    this.stats.cachesDropped++;
    this.#parts.dropCaches();
  }

  async #shrinkTables(excess: number): Promise<void> {
    const limit = Math.floor(Math.max(this.#maxBytes * LEAST_TABLES, this.#parts.tableBytes() - excess));
    if (limit >= this.#tableLimit) {
      this.#warnOnce();
      return;
    }
    this.stats.tablesLimited++;
    this.#tableLimit = limit;
    await this.#parts.limitTables(limit);
  }

  async #letTablesGrow(): Promise<void> {
    const isTight = this.stats.usedBytes > this.#maxBytes * ROOMY;
    if (isTight || this.#tableLimit >= this.#maxTableBytes) return;
    this.#tableLimit = Math.min(this.#maxTableBytes, Math.ceil(this.#tableLimit * GROWTH));
    await this.#parts.limitTables(this.#tableLimit);
  }

  #warnOnce(): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const mib = (bytes: number): number => Math.ceil(bytes / 2 ** 20);
    this.#warn(
      `${mib(this.stats.usedBytes)} MiB are in use, and there is nothing left to give up to stay within ` +
        `--max-memory ${mib(this.#maxBytes)}: give it more`,
    );
  }
}
