import { setPriority } from 'node:os';
import type { Logger } from 'pino';

/**
 * Beside a busy machine: what it reads of processes is gone soon, and stacks are cut until it has learnt their programs.
 * Its share of the CPU is what it needs either way; with three times the weight of others it has it sooner. To be called
 * before threads are made, which inherit it.
 */
const NICE = -5;

/** Needs CAP_SYS_NICE; without it the agent runs as others do. */
export function raisePriority(log: Pick<Logger, 'debug'>): void {
  try {
    setPriority(NICE);
  } catch (error) {
    log.debug(`priority is left as it is: ${(error as Error).message}`);
  }
}
