/** Hands each record of the ring buffer to what takes its kind. One that can't be taken costs itself alone. */

/** The record's type is the u16 at `at`. */
export type TakeRecord = (buffer: Buffer, at: number, size: number) => void;

export class RecordDispatch {
  readonly #takers: Readonly<Record<number, TakeRecord>>;
  readonly #warn: (message: string) => void;
  /** Of an unknown kind; and such as whatever takes them threw at, which is an error of the agent's. */
  readonly stats = { malformed: 0, failed: 0 };

  /** @param takers by type: enum ef_record_type */
  constructor(takers: Readonly<Record<number, TakeRecord>>, warn: (message: string) => void) {
    this.#takers = takers;
    this.#warn = warn;
  }

  take(buffer: Buffer, at: number, size: number): void {
    const type = buffer.readUInt16LE(at);
    const take = this.#takers[type];
    if (!take) {
      this.stats.malformed++;
      return;
    }
    try {
      take(buffer, at, size);
    } catch (error) {
      if (this.stats.failed++ === 0)
        this.#warn(
          `a record of type ${type} could not be taken: ${(error as Error).stack}; others are counted`,
        );
    }
  }
}
