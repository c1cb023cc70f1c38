/**
 * One event per online CPU. Timers of CPUs are spread over one period, so that they do not sample in lock-step; CPUs that
 * come and go are followed.
 */
import type { Native } from '../base/native.ts';

/** PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK. */
export const CPU_CLOCK = { type: 1, config: 0, frequency: 0 };

export interface PerfEventsOptions {
  /** Opens the event of a CPU, disabled: its descriptor. Throws what the kernel says. */
  open(cpu: number): number;
  /** Over which their starts are spread. */
  spreadNs: number;
}

export class PerfEvents {
  readonly #native: Native;
  readonly #options: PerfEventsOptions;
  readonly #fds = new Map<number, number>();
  /** CPUs whose event could not be opened, with the reason; empty where all is well. */
  readonly failed = new Map<number, string>();
  #enabled = false;

  constructor(native: Native, options: PerfEventsOptions) {
    this.#native = native;
    this.#options = options;
  }

  get cpus(): number[] {
    return [...this.#fds.keys()];
  }

  /** Opens events for CPUs that came and closes those of CPUs that went. Throws if no CPU can be sampled. */
  async follow(online: number[]): Promise<void> {
    for (const [cpu, fd] of this.#fds) {
      if (online.includes(cpu)) continue;
      this.#native.closeFd(fd);
      this.#fds.delete(cpu);
    }
    const added: number[] = [];
    let lastError: unknown;
    for (const cpu of online) {
      if (this.#fds.has(cpu)) continue;
      try {
        const fd = this.#options.open(cpu);
        this.#fds.set(cpu, fd);
        this.failed.delete(cpu);
        added.push(fd);
      } catch (error) {
        lastError = error;
        this.failed.set(cpu, (error as Error).message);
      }
    }
    if (this.#fds.size === 0) throw lastError ?? new Error('no CPU is online');
    if (this.#enabled && added.length > 0) await this.#start(added);
  }

  async enable(): Promise<void> {
    this.#enabled = true;
    await this.#start([...this.#fds.values()]);
  }

  disable(): void {
    this.#enabled = false;
    this.#native.perfDisable([...this.#fds.values()]);
  }

  close(): void {
    for (const fd of this.#fds.values()) this.#native.closeFd(fd);
    this.#fds.clear();
  }

  async #start(fds: number[]): Promise<void> {
    if (fds.length === 0) return;
    await this.#native.perfEnable(fds, Math.floor(this.#options.spreadNs / fds.length));
  }
}
