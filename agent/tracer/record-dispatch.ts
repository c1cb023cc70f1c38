/** Hands each record of the ring buffer to what takes its kind. One that can't be taken costs itself alone. */

import type { Steps } from './record-stream.ts';

/** The record's type is the u16 at `at`. Returns what it leaves to be done, if that takes long. */
// biome-ignore lint/suspicious/noConfusingVoidType: most leave nothing, and need not say so
export type TakeRecord = (buffer: Buffer, at: number, size: number) => Steps | void;

export class RecordDispatch {
  readonly #takers: Readonly<Record<number, TakeRecord>>;
  readonly #warn: (message: string) => void;
  /** Records of an unknown kind; and records whose taker threw, which is an error of the agent's. */
  readonly stats = { malformed: 0, failed: 0 };

  /** @param takers by type: enum ef_record_type */
  constructor(takers: Readonly<Record<number, TakeRecord>>, warn: (message: string) => void) {
    this.#takers = takers;
    this.#warn = warn;
  }

  /** Takes one record, and returns the work that it leaves, which does not throw either. */
  take(buffer: Buffer, at: number, size: number): Steps | undefined {
    const type = buffer.readUInt16LE(at);
    const take = this.#takers[type];
    if (!take) {
      this.stats.malformed++;
      return undefined;
    }
    try {
      const steps = take(buffer, at, size);
      return steps ? this.guard(type, steps) : undefined;
    } catch (error) {
      this.#fail(type, error as Error);
      return undefined;
    }
  }

  /** Steps that throw at nobody: what fails counts as a record of that type that could not be taken. */
  *guard(type: number, steps: Steps): Generator<void, void> {
    try {
      yield* steps;
    } catch (error) {
      this.#fail(type, error as Error);
    }
  }

  #fail(type: number, error: Error): void {
    if (this.stats.failed++ > 0) return;
    this.#warn(`a record of type ${type} could not be taken: ${error.stack}; others are counted`);
  }
}
