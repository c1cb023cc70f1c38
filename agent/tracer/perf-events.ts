/**
 * One event per online CPU. Timers of CPUs are spread over one period, so that they do not sample in lock-step; CPUs that
 * come and go are followed.
 *
 * A CPU that goes takes its event along: the kernel removes it, and does not bring it back with the CPU. A machine that
 * sleeps turns off all CPUs but one and has them back before anybody can look, so a CPU that is there may have a dead event:
 * the time for which that was enabled stands still.
 */
import { readFileSync } from 'node:fs';
import { CannotProfile } from '../base/cannot-profile.ts';
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
  /** By descriptor: {@link Native.perfEnabledNs} at the last look. */
  readonly #enabledNs = new Map<number, number>();
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

  /**
   * Opens events for CPUs that came, or were away since the last call, and closes those of CPUs that went. Throws if no CPU can
   * be sampled.
   */
  async follow(online: number[]): Promise<void> {
    for (const [cpu, fd] of this.#fds) {
      if (online.includes(cpu) && !this.#isDead(fd)) continue;
      this.#native.closeFd(fd);
      this.#fds.delete(cpu);
      this.#enabledNs.delete(fd);
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
    if (this.#fds.size === 0) throw explain(lastError) ?? new Error('no CPU is online');
    if (this.#enabled && added.length > 0) await this.#start(added);
  }

  async enable(): Promise<void> {
    this.#enabled = true;
    await this.#start([...this.#fds.values()]);
  }

  disable(): void {
    this.#enabled = false;
    this.#enabledNs.clear();
    this.#native.perfDisable([...this.#fds.values()]);
  }

  close(): void {
    for (const fd of this.#fds.values()) this.#native.closeFd(fd);
    this.#fds.clear();
  }

  #isDead(fd: number): boolean {
    if (!this.#enabled) return false;
    const before = this.#enabledNs.get(fd);
    const now = this.#native.perfEnabledNs(fd);
    this.#enabledNs.set(fd, now);
    return now === before && now >= 0;
  }

  async #start(fds: number[]): Promise<void> {
    if (fds.length === 0) return;
    await this.#native.perfEnable(fds, Math.floor(this.#options.spreadNs / fds.length));
  }
}

const PARANOID = '/proc/sys/kernel/perf_event_paranoid';

/** Kernels of Debian ask for more than CAP_PERFMON at level 3. */
function explain(error: unknown): unknown {
  const { code, message } = (error ?? {}) as NodeJS.ErrnoException;
  if (code !== 'EACCES') return error;
  const level = readFileSync(PARANOID, 'utf8').trim();
  return new CannotProfile(
    `${message}: kernel.perf_event_paranoid is ${level}, from 3 on some kernels want more than CAP_PERFMON. sysctl kernel.perf_event_paranoid=2, or CAP_SYS_ADMIN, helps`,
  );
}
