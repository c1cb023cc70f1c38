/**
 * Sums of ten seconds of a part that this process does not write, in memory: a timeline of days reads them again with
 * each look, and asking the database for each part costs more than adding up what it answers.
 */
import type { RowQuery, Rows } from './store.ts';

export const SUM_MS = 10_000;
export const SUMS_PER_PART = 360;

export class PartSums {
  readonly #tens: Uint16Array;
  readonly #series: Uint32Array;
  readonly #weights: Float64Array;

  /** Columns of one length: tens of seconds since the part's start, series, events. */
  constructor(tens: ArrayLike<number>, series: ArrayLike<number>, weights: ArrayLike<number>) {
    this.#tens = Uint16Array.from(tens);
    this.#series = Uint32Array.from(series);
    this.#weights = Float64Array.from(weights);
  }

  get bytes(): number {
    return this.#tens.byteLength + this.#series.byteLength + this.#weights.byteLength;
  }

  /** @param isWanted 1 for each of the part's tens of seconds that is wanted whole */
  select({ by, series }: RowQuery, isWanted: Uint8Array): Rows {
    const [allTens, allSeries, allWeights] = [this.#tens, this.#series, this.#weights];
    const rows = new Uint32Array(allTens.length);
    let length = 0;
    for (let row = 0; row < rows.length; row++) {
      if (isWanted[allTens[row]!] !== 1) continue;
      if (series === undefined || series[allSeries[row]!] === 1) rows[length++] = row;
    }
    const wanted = rows.subarray(0, length);
    const tens = (): Uint32Array => wanted.map((row) => allTens[row]!);
    const seriesIds = (): Uint32Array => wanted.map((row) => allSeries[row]!);
    const weights = Float64Array.from(wanted, (row) => allWeights[row]!);
    const empty = { times: undefined, nodes: undefined, series: undefined, cpus: undefined };
    if (by.includes('time') && by.includes('series')) {
      return { ...empty, length, times: tens().map(timeOf), series: seriesIds(), weights };
    }
    if (by.includes('time')) {
      const [ids, sums] = sumBy(tens(), weights);
      return { ...empty, length: ids.length, times: ids.map(timeOf), weights: sums };
    }
    const [ids, sums] = sumBy(by.includes('series') ? seriesIds() : new Uint32Array(length), weights);
    return { ...empty, length: ids.length, series: ids, weights: sums };
  }
}

const timeOf = (tens: number): number => tens * SUM_MS;

/** Each key once, with the sum of its weights. */
function sumBy(keys: Uint32Array, weights: Float64Array): [keys: number[], sums: number[]] {
  const sums = new Float64Array(keys.reduce((most, key) => Math.max(most, key), -1) + 1);
  for (let row = 0; row < keys.length; row++) sums[keys[row]!]! += weights[row]!;
  const found: number[] = [];
  for (const [key, sum] of sums.entries()) if (sum > 0) found.push(key);
  return [found, found.map((key) => sums[key]!)];
}
