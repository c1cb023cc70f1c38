/**
 * Keeps the agent inside `--max-cpu`, and its profiles on time. Short bursts are free, as at the start, or where many
 * programs begin at once: what was not used before pays for them. Once that is used up, or where the agent falls behind
 * since the machine gives it less, samples are left out by chance until the rest fits. What is shown keeps its shares
 * then, which it would not if the ring buffer ran full: new stacks need more room than known ones. Each one is counted
 * (`bpf.samples_shed`).
 */

export interface CpuBudgetOptions {
  /** Share of one core. */
  limit: number;
  /** CPU time so far of the agent and of the processes that work for it, milliseconds. */
  cpuMs(): number;
  nowMs(): number;
  /** Are records lost or late? */
  isBehind(): boolean;
  /** Makes BPF leave out that share of the samples from now on. */
  shed(share: number): void;
}

/** Seconds of the limit that may be saved up, and that may be owed: what starting took beyond them is not paid back. */
const BURST_SECONDS = 20;
const DEBT_SECONDS = 6;
/** Smallest factor by which the kept share changes at a look: its effect shows in the CPU time of the next seconds only. */
const LEAST_STEP = 0.5;
const RECOVERY = 1.25;
/** And up to so fast where it uses hardly any of what it may, as behind a start that cost much whatever was sampled. */
const FAST_RECOVERY = 2;
/** The agent fell behind not long ago: samples come back more slowly, or they would be lost again within seconds. */
const SLOW_RECOVERY = 1.1;
const CALM_MS = 20_000;
const SETTLE_MS = 3000;
/** At least one sample in so many is taken. */
const MAX_SHED = 1023 / 1024;

export class CpuBudget {
  readonly #options: CpuBudgetOptions;
  /** Milliseconds of CPU time that are saved up; below 0 they are owed. */
  #creditMs: number;
  readonly #maxCreditMs: number;
  #kept = 1;
  #seenCpuMs: number;
  #seenAtMs: number;
  #behindAtMs = Number.NEGATIVE_INFINITY;
  readonly stats = {
    /** Looks that found it behind. */
    timesBehind: 0,
    /** Looks at which samples were being left out, once a second. */
    secondsShedding: 0,
  };

  constructor(options: CpuBudgetOptions) {
    this.#options = options;
    this.#maxCreditMs = options.limit * BURST_SECONDS * 1000;
    this.#creditMs = this.#maxCreditMs;
    this.#seenCpuMs = options.cpuMs();
    this.#seenAtMs = options.nowMs();
  }

  /** Once a second or so. */
  check(): void {
    const { limit, cpuMs, nowMs, shed } = this.#options;
    const elapsedMs = nowMs() - this.#seenAtMs;
    // a worker that has just ended is not in it for a moment
    const usedMs = Math.max(cpuMs() - this.#seenCpuMs, 0);
    if (elapsedMs <= 0) return;
    this.#seenAtMs += elapsedMs;
    this.#seenCpuMs += usedMs;
    const allowedMs = limit * elapsedMs;
    const credit = this.#creditMs + allowedMs - usedMs;
    this.#creditMs = Math.max(-limit * DEBT_SECONDS * 1000, Math.min(credit, this.#maxCreditMs));
    const kept = this.#next(allowedMs / Math.max(usedMs, 1));
    if (kept < 1) this.stats.secondsShedding++;
    if (kept === this.#kept) return;
    this.#kept = kept;
    shed(1 - kept);
  }

  #next(room: number): number {
    return Math.min(1, Math.max(this.#kept * this.#factor(room), 1 - MAX_SHED));
  }

  /** `room`: above 1 where less was used than allowed. */
  #factor(room: number): number {
    if (this.#options.isBehind()) {
      // what waits already is not less for it
      if (this.#seenAtMs - this.#behindAtMs < SETTLE_MS) return 1;
      this.stats.timesBehind++;
      this.#behindAtMs = this.#seenAtMs;
      return LEAST_STEP;
    }
    const isCalm = this.#seenAtMs - this.#behindAtMs >= CALM_MS;
    const recovery = isCalm
      ? Math.min(Math.max(RECOVERY, Math.sqrt(room) / 4), FAST_RECOVERY)
      : SLOW_RECOVERY;
    return this.#creditMs > 0 ? recovery : Math.max(LEAST_STEP, Math.min(room, recovery));
  }
}
