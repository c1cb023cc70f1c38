/**
 * Keeps the agent inside `--max-memory`: its resident memory and its BPF maps together. What can be made again goes
 * first, a step further each time that finds it too large: what malloc keeps free, caches of names and traces,
 * unwind tables by least use. A process smaller than what the agent needs to run at all can't be had: that is said.
 */

/** Memory that can be freed; each part is bounded and made again when it is needed. */
export interface Reclaimable {
  /** Resident memory of the process, and what its workers have for themselves, bytes. */
  residentBytes(): number;
  /** Kernel memory of the BPF maps, the unwind tables included, bytes. */
  mapBytes(): number;
  releaseFreeMemory(): void;
  /** Drops caches that the main thread and the workers fill, and collects what was the main thread's. */
  dropCaches(): Promise<void>;
  /** Unwind tables, bytes. */
  tableBytes(): number;
  /** Sets the limit for tables, bytes; the least used beyond it are evicted. */
  limitTables(bytes: number): Promise<void>;
}

/** Share of the budget that tables have in any case: with less they would evict each other. */
const LEAST_TABLES = 1 / 16;
/** Share of the budget from which on memory is freed, since more is allocated before that has effect. */
export const TARGET = 0.8;
/** Share of the budget above which nothing waits for the next look, since a large file may be read meanwhile. */
const URGENT = 0.9;
/** Inside the budget something is given up at every so many looks; caches half as often, they fill again. */
export const CALM_LOOKS = 5;
/** Tables grow again below this share of the budget, by so much at a time. */
const ROOMY = 0.65;
const GROWTH = 1.25;

export class MemoryBudget {
  readonly #maxBytes: number;
  readonly #parts: Reclaimable;
  readonly #maxTableBytes: number;
  readonly #warn: (message: string) => void;
  #tableLimit: number;
  #looks = 0;
  /** Look at which caches may be dropped again. */
  #nextDrop = 0;
  #hasWarned = false;
  readonly stats = {
    budgetBytes: 0,
    usedBytes: 0,
    /** Times that it was found above the budget. */
    timesOver: 0,
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

  /** Once a second. What is (nearly) above the budget can't wait; what is above the target is looked at every few seconds. */
  async check(): Promise<void> {
    this.#looks++;
    const excess = this.#excess();
    if (this.stats.usedBytes > this.#maxBytes) this.stats.timesOver++;
    if (!this.#isUrgent() && this.#looks % CALM_LOOKS !== 0) return;
    if (excess > 0) await this.#giveUp();
    else await this.#letTablesGrow();
  }

  async #giveUp(): Promise<void> {
    this.#parts.releaseFreeMemory();
    if (this.#excess() <= 0) return;
    if (this.#looks >= this.#nextDrop) {
      this.#nextDrop = this.#looks + 2 * CALM_LOOKS;
      this.stats.cachesDropped++;
      await this.#parts.dropCaches();
      // workers take a moment to end: tables wait for that where there is time
      if (this.#excess() <= 0 || !this.#isUrgent()) return;
    }
    await this.#shrinkTables(this.#excess());
  }

  #isUrgent(): boolean {
    return this.stats.usedBytes > this.#maxBytes * URGENT;
  }

  /** Bytes above the target. */
  #excess(): number {
    this.stats.usedBytes = this.#parts.residentBytes() + this.#parts.mapBytes();
    return this.stats.usedBytes - this.#maxBytes * TARGET;
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
    if (this.#hasWarned || this.stats.usedBytes <= this.#maxBytes) return;
    this.#hasWarned = true;
    const mib = (bytes: number): number => Math.ceil(bytes / 2 ** 20);
    this.#warn(
      `${mib(this.stats.usedBytes)} MiB are in use, and there is nothing left to give up to stay within ` +
        `--max-memory ${mib(this.#maxBytes)}: give it more`,
    );
  }
}
