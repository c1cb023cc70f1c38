/** Probabilistic profiling: in each interval the whole machine is sampled or not, by chance. */
import type { PerfEvents } from './tracer/perf-events.ts';

export interface SamplingOptions {
  /** Per cent of the intervals in which samples are taken; 100: always. */
  probabilisticThreshold: number;
  probabilisticIntervalMs: number;
}

export class Sampling {
  readonly #options: SamplingOptions;
  readonly #events: Pick<PerfEvents, 'enable' | 'disable'>;
  readonly #random: () => number;
  #timer: NodeJS.Timeout | undefined;
  #on = true;

  constructor(
    options: SamplingOptions,
    events: Pick<PerfEvents, 'enable' | 'disable'>,
    random: () => number = Math.random,
  ) {
    this.#options = options;
    this.#events = events;
    this.#random = random;
  }

  /** The events are enabled at this point; with a threshold below 100 the first choice is made at once. */
  start(): void {
    if (this.#options.probabilisticThreshold >= 100) return;
    this.choose();
    this.#timer = setInterval(() => this.choose(), this.#options.probabilisticIntervalMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Decides about the interval that begins now. */
  choose(): void {
    const on = this.#random() * 100 < this.#options.probabilisticThreshold;
    if (on === this.#on) return;
    this.#on = on;
    if (on) void this.#events.enable();
    else this.#events.disable();
  }
}
