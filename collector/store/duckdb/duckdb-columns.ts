/** Columns of DuckDB's chunks without an object for every value: `getColumns` costs some fifty times as much. */
import type { DuckDBDataChunk, DuckDBVector } from '@duckdb/node-api';

/** Gives an answer chunk by chunk, in no order. */
export type Scan = (sql: string, take: (chunk: DuckDBDataChunk) => void) => Promise<void>;

type Numbers = Uint16Array | Int16Array | Uint32Array | Float64Array | BigInt64Array | BigUint64Array;

/** Vectors that are arrays of numbers. */
type NumberVector = DuckDBVector & { readonly items: Numbers };

/** Valid as long as the chunk is; has no NULLs. */
export function numbersOf(chunk: DuckDBDataChunk, column: number): Numbers {
  return (chunk.getColumnVector(column) as NumberVector).items;
}

/** Reads a column of texts, row by row. */
export function textsOf(chunk: DuckDBDataChunk, column: number): (row: number) => string {
  const vector = chunk.getColumnVector(column);
  return (row) => String(vector.getItem(row));
}

/** Fills a column of a chunk that will be appended. */
export function setNumbers(
  chunk: DuckDBDataChunk,
  column: number,
  values: ArrayLike<number> | BigUint64Array | BigInt64Array,
): void {
  const vector = chunk.getColumnVector(column) as NumberVector;
  (vector.items as { set(values: ArrayLike<number | bigint>): void }).set(values);
  vector.flush();
}
