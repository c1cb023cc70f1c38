/** How many bytes of requests may be in memory at a time, over all senders and protocols: each request holds a lease. */
import type { BudgetStats } from '../status/status.ts';
import { SpentMemory } from './spent-memory.ts';

/** No room was left for a request: a later try may find some. */
export class OverBudget extends Error {
  override name = 'OverBudget';
}

export class ByteBudget {
  readonly #maxBytes: number;
  readonly #leases = new Set<ByteLease>();
  readonly #spent = new SpentMemory();
  #bytes = 0;
  #peakBytes = 0;
  #refused = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  lease(): ByteLease {
    const lease: ByteLease = new ByteLease(
      (bytes) => this.#grow(lease, bytes),
      () => {
        this.#leases.delete(lease);
        this.#bytes -= lease.bytes;
        this.#spent.noteReleased(lease.bytes, this.#bytes);
      },
    );
    this.#leases.add(lease);
    return lease;
  }

  stats(): BudgetStats {
    return {
      maxBytes: this.#maxBytes,
      bytes: this.#bytes,
      peakBytes: this.#peakBytes,
      refused: this.#refused,
    };
  }

  /**
   * Where there is no room, the largest request that is still arriving gives way: who fills the memory loses it, small
   * requests of others pass.
   */
  #grow(lease: ByteLease, bytes: number): boolean {
    while (this.#bytes + bytes > this.#maxBytes) {
      let largest = lease;
      for (const other of this.#leases)
        if (other.canGiveWay && other.bytes > largest.bytes + (largest === lease ? bytes : 0))
          largest = other;
      this.#refused++;
      if (largest === lease) return false;
      largest.revoke();
    }
    this.#bytes += bytes;
    this.#peakBytes = Math.max(this.#peakBytes, this.#bytes);
    return true;
  }
}

/** What one request holds of the budget, until `end`. */
export class ByteLease {
  readonly #take: (bytes: number) => boolean;
  readonly #release: () => void;
  #bytes = 0;
  #onRevoked: ((error: OverBudget) => void) | undefined;
  #ended = false;

  constructor(take: (bytes: number) => boolean, release: () => void) {
    this.#take = take;
    this.#release = release;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get canGiveWay(): boolean {
    return this.#onRevoked !== undefined;
  }

  /** Until the next call another request may take what this one holds. */
  whenRevoked(act: ((error: OverBudget) => void) | undefined): void {
    this.#onRevoked = act;
  }

  /** @throws OverBudget */
  grow(bytes: number): void {
    if (this.#ended || !this.#take(bytes)) throw overBudget();
    this.#bytes += bytes;
  }

  revoke(): void {
    const act = this.#onRevoked;
    this.end();
    act?.(overBudget());
  }

  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#onRevoked = undefined;
    this.#release();
    this.#bytes = 0;
  }
}

const overBudget = (): OverBudget =>
  new OverBudget('other requests fill the memory that the collector has for them: send again later');
