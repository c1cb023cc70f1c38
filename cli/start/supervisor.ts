/**
 * What stands above `everyframe run` (supervisor/supervise.cc): it starts the agent again when that died, and lives on
 * with the collector meanwhile. Two descriptors are inherited from it, which EVERYFRAME_SUPERVISOR names: LIFE, a pipe
 * that tells the collector what became of the agent, and NOTE, what one agent leaves to the next.
 */

import { readFileSync, readSync, writeSync } from 'node:fs';
import type { CollectorReady } from './collector-ready.ts';

/** Exit code that asks for a new start: EX_TEMPFAIL of sysexits(3). */
export const START_AGAIN = 75;
const NOTE_BYTES = 4096;

/** A collector that outlives the agent that started it. */
export interface NotedCollector {
  pid: number;
  /** Tells it from another process that has its number later. */
  startTicks: string;
  ready: CollectorReady;
}

export class Supervisor {
  readonly lifeFd: number;
  readonly #noteFd: number;

  constructor(lifeFd: number, noteFd: number) {
    this.lifeFd = lifeFd;
    this.#noteFd = noteFd;
  }

  /** Undefined where nothing stands above. */
  static of(env: NodeJS.ProcessEnv): Supervisor | undefined {
    const [, life, note] = /^(\d+),(\d+)$/.exec(env['EVERYFRAME_SUPERVISOR'] ?? '') ?? [];
    return life === undefined ? undefined : new Supervisor(Number(life), Number(note));
  }

  /** The collector of an agent before this one, if it is still there. */
  collector(): NotedCollector | undefined {
    const bytes = Buffer.alloc(NOTE_BYTES);
    const text = bytes.toString('utf8', 0, readSync(this.#noteFd, bytes, 0, NOTE_BYTES, 0));
    const json = /^\d+\n(.*)\n/.exec(text)?.[1];
    if (json === undefined) return undefined;
    const noted = JSON.parse(json) as NotedCollector;
    return isAlive(noted) ? noted : undefined;
  }

  /** Where the agent that started it can't run at all: nothing is left to live on for. */
  forgetCollector(): void {
    writeSync(this.#noteFd, '\n'.repeat(NOTE_BYTES), 0);
  }

  note(pid: number, ready: CollectorReady): void {
    const noted: NotedCollector = { pid, startTicks: startTicksOf(pid), ready };
    writeSync(this.#noteFd, `${pid}\n${JSON.stringify(noted)}\n`.padEnd(NOTE_BYTES, '\n'), 0);
  }
}

export const isAlive = ({ pid, startTicks }: NotedCollector): boolean => startTicksOf(pid) === startTicks;

/** '' where there is no such process. */
function startTicksOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  } catch {
    return '';
  }
}
