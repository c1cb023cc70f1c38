/**
 * Files that took a worker down, or too long. Each is left alone for a while that grows each time, so that none of them
 * keeps workers from what others ask for; it is said which file it was, and why.
 */

import { BackOff } from '../base/back-off.ts';
import type { FailureReason, WorkerFailure } from './worker-failure.ts';

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

export interface PenalisedFile {
  /** What it is known by. */
  key: string;
  /** For a person. */
  path: string;
  /** What profiles lack meanwhile, for a person. */
  lacks: string;
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
  readonly #files: BackOff<string>;
  readonly #warn: (message: string) => void;
  #warnings = 0;

  constructor(warn: (message: string) => void = () => {}, now?: () => number) {
    this.#warn = warn;
    this.#files = new BackOff(MAX_FILES, now);
  }

  isLeftAlone(key: string): boolean {
    return this.#files.isLeftAlone(key);
  }

  /** How long it is left alone, milliseconds. */
  note({ key, path, lacks }: PenalisedFile, { reason, message }: WorkerFailure): number {
    if (reason === 'stopped') return 0;
    this.stats[reason === 'timeout' ? 'timedOut' : reason]++;
    const firstMs = PASSING.has(reason) ? PASSING_MS : LASTING_MS;
    const pauseMs = this.#files.note(key, { firstMs, factor: GROWTH, maxMs: MAX_MS });
    this.stats.penalised = this.#files.size;
    if (this.#warnings++ < MAX_WARNINGS)
      this.#warn(
        `${path === '' ? 'a file' : JSON.stringify(path)} could not be read: ${message}. It is left alone for ${Math.round(pauseMs / 1000)} s; ` +
          `until then ${lacks}`,
      );
    return pauseMs;
  }
}
