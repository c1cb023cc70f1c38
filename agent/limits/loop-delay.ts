/**
 * How long the main loop was kept from its work by one thing. While it is, nothing is drained, sent or named.
 * libuv's timer behind it wakes the process 50 times a second, which costs about as much as sampling at the default
 * rate: it runs only where somebody asked for the agent's own counters.
 */
import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks';

/** Also the shortest delay that is told from none. */
const RESOLUTION_MS = 20;
/** Aim for the longest delay of the event loop. */
export const MAX_LOOP_DELAY_MS = 50;

export class LoopDelay {
  readonly stats = { maxDelayMs: 0, intervalsOverLimit: 0 };
  #histogram: IntervalHistogram | undefined;

  start(): void {
    this.#histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
    this.#histogram.enable();
  }

  /** Ends an interval: adds what was seen since the last one. */
  takeInterval(): void {
    if (!this.#histogram || this.#histogram.count === 0) return;
    // from one tick of the timer to the next, nanoseconds
    const delayMs = Math.max(0, Math.round(this.#histogram.max / 1e6) - RESOLUTION_MS);
    this.#histogram.reset();
    this.stats.maxDelayMs = Math.max(this.stats.maxDelayMs, delayMs);
    if (delayMs > MAX_LOOP_DELAY_MS) this.stats.intervalsOverLimit++;
  }

  stop(): void {
    this.#histogram?.disable();
    this.#histogram = undefined;
  }
}
