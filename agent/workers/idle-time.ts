/**
 * How long the last worker waits for another request before it ends. Starting one takes as much CPU time as a minute of an
 * agent at rest: where one was needed again soon after the last one had ended, those that come wait longer.
 */

/** Needed again this soon, it would better not have ended. */
const SOON_MS = 60_000;
const MAX_FACTOR = 8;

export class IdleTime {
  readonly #baseMs: number;
  #factor = 1;
  #endedAtMs = Number.NEGATIVE_INFINITY;

  constructor(baseMs: number) {
    this.#baseMs = baseMs;
  }

  get ms(): number {
    return this.#baseMs * this.#factor;
  }

  /** There is no worker any more, since the last one had nothing to do. */
  noteEnd(nowMs: number): void {
    this.#endedAtMs = nowMs;
  }

  /** A worker is needed where there is none. */
  noteStart(nowMs: number): void {
    const isSoon = nowMs - this.#endedAtMs < SOON_MS;
    this.#factor = isSoon ? Math.min(this.#factor * 2, MAX_FACTOR) : 1;
    this.#endedAtMs = Number.NEGATIVE_INFINITY;
  }
}
