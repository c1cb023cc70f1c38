/**
 * What waits for the receiver: a ring of encoded requests, first in, first out, bounded in bytes and in entries.
 * Where there is no room the oldest leave, because the newest say most about what the machine does now.
 */

/** One encoded request. */
export interface QueueEntry {
  readonly bytes: Uint8Array;
  /** Sampling events in it. */
  readonly samples: number;
  /** It was sent, and what became of it is not known. */
  mayHaveArrived?: boolean;
}

export interface QueueLimits {
  maxBytes: number;
  maxEntries: number;
}

export class RequestQueue {
  readonly #limits: QueueLimits;
  readonly #ring: (QueueEntry | undefined)[];
  #head = 0;
  #length = 0;
  #bytes = 0;
  #samples = 0;
  /** What found no room since the start. */
  readonly dropped = { requests: 0, samples: 0, unansweredSamples: 0 };

  constructor(limits: QueueLimits) {
    this.#limits = limits;
    this.#ring = new Array(Math.max(1, limits.maxEntries));
  }

  get length(): number {
    return this.#length;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get samples(): number {
    return this.#samples;
  }

  /** The oldest entry. */
  peek(): QueueEntry | undefined {
    return this.#length === 0 ? undefined : this.#ring[this.#head];
  }

  /**
   * Appends; drops the oldest entries until it fits. `keepHead` spares the oldest one, because it is on the
   * wire and may arrive; an entry that can't fit even then is itself dropped.
   */
  push(entry: QueueEntry, keepHead = false): void {
    const kept = keepHead && this.#length > 0 ? 1 : 0;
    const keptBytes = kept === 1 ? this.#ring[this.#head]!.bytes.length : 0;
    if (entry.bytes.length + keptBytes > this.#limits.maxBytes || kept === this.#ring.length) {
      this.#countDropped(entry);
      return;
    }
    while (!this.#fits(entry)) {
      if (kept === 1) this.#swapFirstTwo();
      this.#countDropped(this.shift()!);
    }
    this.#ring[(this.#head + this.#length) % this.#ring.length] = entry;
    this.#account(entry, 1);
  }

  /** Takes the oldest entry out. */
  shift(): QueueEntry | undefined {
    const entry = this.peek();
    if (!entry) return undefined;
    this.#ring[this.#head] = undefined;
    this.#head = (this.#head + 1) % this.#ring.length;
    this.#account(entry, -1);
    return entry;
  }

  /** Puts an entry before all others; it counts as the oldest, so without room for it, it is dropped. */
  unshift(entry: QueueEntry): void {
    if (!this.#fits(entry)) {
      this.#countDropped(entry);
      return;
    }
    this.#head = (this.#head + this.#ring.length - 1) % this.#ring.length;
    this.#ring[this.#head] = entry;
    this.#account(entry, 1);
  }

  #fits(entry: QueueEntry): boolean {
    return this.#length < this.#ring.length && this.#bytes + entry.bytes.length <= this.#limits.maxBytes;
  }

  #account(entry: QueueEntry, sign: 1 | -1): void {
    this.#length += sign;
    this.#bytes += sign * entry.bytes.length;
    this.#samples += sign * entry.samples;
  }

  #countDropped(entry: QueueEntry): void {
    this.dropped.requests++;
    this.dropped.samples += entry.samples;
    if (entry.mayHaveArrived) this.dropped.unansweredSamples += entry.samples;
  }

  #swapFirstTwo(): void {
    const second = (this.#head + 1) % this.#ring.length;
    const first = this.#ring[this.#head];
    this.#ring[this.#head] = this.#ring[second];
    this.#ring[second] = first;
  }
}
