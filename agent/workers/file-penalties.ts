/**
 * Files that took a worker down, or too long. Each is left alone for a while that grows each time, so that none of them
 * keeps workers from what others ask for; it is said which file it was, and why.
 */
import { LRUCache } from 'lru-cache';
import type { FailureReason, WorkerFailure } from './worker-client.ts';

/** The machine may have been busy, or a disk slow. */
const PASSING: ReadonlySet<FailureReason> = new Set(['timeout', 'stalled']);
const PASSING_MS = 30_000;
/** It would end the same way the next time. */
const LASTING_MS = 600_000;
const GROWTH = 4;
const MAX_MS = 24 * 3_600_000;
const MAX_FILES = 4096;
/** Warnings; whoever makes such files can make many. */
const MAX_WARNINGS = 20;

interface Penalty {
  failures: number;
  /** Milliseconds of performance.now(). */
  until: number;
}

export class FilePenalties {
  readonly stats = {
    /** Workers that a file took down by a crash, and those that it took down or that were ended for their memory. */
    crashed: 0,
    memory: 0,
    /** Workers that were ended since one file took too much CPU time, or waited for something that did not come. */
    timedOut: 0,
    stalled: 0,
    /** Files that are left alone for that, at most as many as are remembered. */
    penalised: 0,
  };
  readonly #files = new LRUCache<string, Penalty>({ max: MAX_FILES });
  readonly #warn: (message: string) => void;
  readonly #now: () => number;
  #warnings = 0;

  constructor(warn: (message: string) => void = () => {}, now: () => number = () => performance.now()) {
    this.#warn = warn;
    this.#now = now;
  }

  isLeftAlone(key: string): boolean {
    const penalty = this.#files.get(key);
    return penalty !== undefined && this.#now() < penalty.until;
  }

  /** `key`: what it is known by; `path`: for a person. How long it is left alone, milliseconds. */
  note(key: string, path: string, { reason, message }: WorkerFailure): number {
    if (reason === 'stopped') return 0;
    this.stats[reason === 'timeout' ? 'timedOut' : reason]++;
    const failures = (this.#files.get(key)?.failures ?? 0) + 1;
    const first = PASSING.has(reason) ? PASSING_MS : LASTING_MS;
    const pauseMs = Math.min(first * GROWTH ** (failures - 1), MAX_MS);
    this.#files.set(key, { failures, until: this.#now() + pauseMs });
    this.stats.penalised = this.#files.size;
    if (this.#warnings++ < MAX_WARNINGS)
      this.#warn(
        `${JSON.stringify(path)} could not be read: ${message}. It is left alone for ${Math.round(pauseMs / 1000)} s; ` +
          `frames in it have no names, and stacks through it may be cut`,
      );
    return pauseMs;
  }
}
