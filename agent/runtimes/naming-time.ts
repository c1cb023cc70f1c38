/**
 * How long the agent reads names for one process. Every read has a cap of its own, but a program that makes functions
 * with the largest tables there may be, and has a thousand of them in a stack, would keep the agent busy all the same,
 * at the cost of every other process. Two seconds are a hundred times what a large program needs when it starts; one that needs
 * more all the same, as on a slow machine, has its names later, as the time comes back.
 */
const MICROS = 1_000_000;
/** CPU time that a process has at first, and at most. */
const BURST_MICROS = 2 * MICROS;
/** Share of each second that it gets on top: 5 % of a CPU. */
const REFILL = 0.05;

export interface Clock {
  /** CPU time of this thread: neither a busy machine nor the agent's workers must count. Asked twice a frame. */
  cpuMicros(): number;
  wallMs(): number;
}

export class NamingTime {
  readonly #clock: Clock;
  #leftMicros = BURST_MICROS;
  #filledAtMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#filledAtMs = clock.wallMs();
  }

  get isUp(): boolean {
    if (this.#leftMicros > 0) return false;
    const now = this.#clock.wallMs();
    const filled = this.#leftMicros + (now - this.#filledAtMs) * 1000 * REFILL;
    this.#leftMicros = Math.min(filled, BURST_MICROS);
    this.#filledAtMs = now;
    return this.#leftMicros <= 0;
  }

  spend<T>(read: () => T): T {
    const start = this.#clock.cpuMicros();
    const result = read();
    this.#leftMicros -= this.#clock.cpuMicros() - start;
    return result;
  }
}
