import { countBelow } from './search.ts';

/** Values of ranges of numbers that don't overlap. */
export class RangeMap<T> {
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  readonly #values: T[] = [];

  get size(): number {
    return this.#values.length;
  }

  /** Undefined where no range contains it. */
  get(at: number): T | undefined {
    const i = this.#before(at);
    return i >= 0 && at < this.#ends[i]! ? this.#values[i] : undefined;
  }

  /** Sets the value of `[start, end)` around a number that has none yet, as far as other ranges leave room. */
  set(at: number, { start, end }: { start: number; end: number }, value: T): void {
    const i = this.#before(at) + 1;
    this.#starts.splice(i, 0, Math.max(start, this.#ends[i - 1] ?? start));
    this.#ends.splice(i, 0, Math.min(end, this.#starts[i + 1] ?? end));
    this.#values.splice(i, 0, value);
  }

  /** Ascending. */
  *entries(): Generator<[start: number, end: number, value: T]> {
    for (let i = 0; i < this.#values.length; i++) yield [this.#starts[i]!, this.#ends[i]!, this.#values[i]!];
  }

  /** Index of the last range that starts at or below it, -1 if there is none. */
  #before(at: number): number {
    return countBelow(this.#starts.length, (i) => this.#starts[i]! <= at) - 1;
  }
}
