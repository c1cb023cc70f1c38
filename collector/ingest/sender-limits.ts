import { LRUCache } from 'lru-cache';

const MAX_SENDERS = 4096;
/** A sender that was silent may send so many seconds' worth at once: a queue that waited for the collector. */
const BURST_S = 10;

/** How much each sender sends, in bytes of requests: a bucket each that drains at the rate. */
export class SenderLimits {
  readonly #bytesPerS: number;
  readonly #now: () => number;
  readonly #senders = new LRUCache<string, { bytes: number; atMs: number }>({ max: MAX_SENDERS });

  constructor(bytesPerS: number, now: () => number) {
    this.#bytesPerS = bytesPerS;
    this.#now = now;
  }

  /** Why a request has to wait, undefined if it may pass; one larger than the bucket passes while that is empty. */
  take(sender: string, bytes: number): string | undefined {
    const nowMs = this.#now();
    const known = this.#senders.get(sender);
    const drained = known === undefined ? 0 : ((nowMs - known.atMs) / 1000) * this.#bytesPerS;
    const level = Math.max(0, (known?.bytes ?? 0) - Math.max(0, drained));
    const fits = level === 0 || level + bytes <= this.#bytesPerS * BURST_S;
    this.#senders.set(sender, { bytes: fits ? level + bytes : level, atMs: nowMs });
    if (fits) return undefined;
    return `more than ${this.#bytesPerS} bytes a second from one address (--max-sender-rate): asked to wait`;
  }
}
