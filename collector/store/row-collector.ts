import type { Column, RowQuery, Rows } from './store.ts';

/** Columns of samples. */
type SampleColumn = Exclude<Column, 'group'>;

const INITIAL_ROWS = 4096;

/** Gathers those rows of chunks that a query's masks want. */
export class RowCollector {
  /** Columns that chunks must have, in this order: those that are asked for, and those that masks test. */
  readonly columns: readonly SampleColumn[];
  readonly #query: RowQuery;
  readonly #masks: (Uint8Array | undefined)[];
  readonly #isMasked: boolean;
  /** Times, nodes, series and links are far below 2 ** 31; a CPU may be -1. */
  #values: Int32Array[];
  #weights = new Float64Array(INITIAL_ROWS);
  #length = 0;

  constructor(query: RowQuery) {
    this.#query = query;
    const byColumn = {
      time: undefined,
      node: query.nodes,
      series: query.series,
      cpu: query.cpus,
      link: query.links,
    };
    const wanted = new Set(query.by as readonly SampleColumn[]);
    if (query.limit !== undefined) wanted.add('time');
    for (const column of ['node', 'series', 'cpu', 'link'] as const)
      if (byColumn[column]?.includes(0)) wanted.add(column);
    this.columns = [...wanted];
    this.#masks = this.columns.map((column) =>
      byColumn[column]?.includes(0) ? byColumn[column] : undefined,
    );
    this.#isMasked = this.#masks.some((mask) => mask !== undefined);
    this.#values = this.columns.map(() => new Int32Array(INITIAL_ROWS));
  }

  add(weights: Float64Array, columns: readonly (Uint32Array | Int16Array)[]): void {
    while (this.#length + weights.length > this.#weights.length) this.#enlarge();
    if (this.#isMasked) {
      this.#addMasked(weights, columns);
      return;
    }
    this.#weights.set(weights, this.#length);
    for (const [i, column] of columns.entries()) this.#values[i]!.set(column, this.#length);
    this.#length += weights.length;
  }

  /** Given a limit, the earliest. */
  rows(): Rows {
    const { limit } = this.#query;
    const kept = limit !== undefined && this.#length > limit ? this.#earliest(limit) : undefined;
    const of = (column: SampleColumn): ArrayLike<number> | undefined => {
      const values = this.#values[this.columns.indexOf(column)];
      return values && (kept?.map((row) => values[row]!) ?? values.subarray(0, this.#length));
    };
    return {
      length: kept?.length ?? this.#length,
      times: of('time'),
      nodes: of('node'),
      series: of('series'),
      groups: undefined,
      cpus: of('cpu'),
      links: of('link'),
      weights: kept
        ? Float64Array.from(kept, (row) => this.#weights[row]!)
        : this.#weights.subarray(0, this.#length),
    };
  }

  #addMasked(weights: Float64Array, columns: readonly (Uint32Array | Int16Array)[]): void {
    const { length } = columns;
    for (let row = 0; row < weights.length; row++) {
      let isWanted = true;
      for (let i = 0; i < length; i++) {
        const mask = this.#masks[i];
        if (mask !== undefined && mask[columns[i]![row]!] !== 1) isWanted = false;
      }
      if (!isWanted) continue;
      for (let i = 0; i < length; i++) this.#values[i]![this.#length] = columns[i]![row]!;
      this.#weights[this.#length++] = weights[row]!;
    }
  }

  /** Rows, in no order. */
  #earliest(limit: number): Int32Array {
    const times = this.#values[this.columns.indexOf('time')]!;
    const rows = Int32Array.from({ length: this.#length }, (_, row) => row);
    return rows.sort((a, b) => times[a]! - times[b]!).subarray(0, limit);
  }

  #enlarge(): void {
    const size = 2 * this.#weights.length;
    const weights = new Float64Array(size);
    weights.set(this.#weights);
    this.#weights = weights;
    this.#values = this.#values.map((values) => {
      const larger = new Int32Array(size);
      larger.set(values);
      return larger;
    });
  }
}
