/** Growing columns of (address, rule) rows, grouped by function. */
import { sortedOrder } from './sorted.ts';
import { MAX_IMAGE_BYTES, TableTooLarge } from './table-limits.ts';

/** More would not fit into a table. A few bytes of a file can repeat many rows. */
const MAX_ROWS = MAX_IMAGE_BYTES / 4;

/** Rows of code that is further behind its function's start are left out: no function is as long. */
const MAX_OFFSET = 0xffff_ffff;

/** Room for so many more is not memory yet: that comes with the first write to a page. */
const grow = <T extends Float64Array | Uint16Array | Uint32Array | Uint8Array>(
  column: T,
  length: number,
): T => {
  const larger = new (column.constructor as new (n: number) => T)(length);
  larger.set(column as never);
  return larger;
};

export class FunctionRows {
  /** From its function's start, bytes. */
  offsets = new Uint32Array(4096);
  rules = new Uint16Array(4096);
  rowCount = 0;
  /** Function i has rows firstRow[i] … firstRow[i + 1]. */
  starts = new Float64Array(256);
  ends = new Float64Array(256);
  /** 1: it also holds for the byte before it and for the one behind it, unless another function does. */
  margin = new Uint8Array(256);
  firstRow = new Uint32Array(257);
  count = 0;
  #previousRule = -1;
  #byStart: Uint32Array = new Uint32Array(0);

  /** Indices of the functions so far by ascending start; of those that begin at once the last first. Not to be changed. */
  byStart(): Uint32Array {
    this.#byStart = sortedOrder(this.starts, this.count, this.#byStart);
    return this.#byStart;
  }

  /** Makes room at once for what is likely to come: growing by and by leaves as much behind as there is in the end. */
  reserve(functions: number, rows: number): void {
    this.#growFunctions(this.count + Math.ceil(functions) + 1);
    this.#growRows(Math.min(this.rowCount + Math.ceil(rows), MAX_ROWS));
  }

  #growFunctions(length: number): void {
    if (length <= this.starts.length) return;
    this.starts = grow(this.starts, length);
    this.ends = grow(this.ends, length);
    this.margin = grow(this.margin, length);
    this.firstRow = grow(this.firstRow, length + 1);
  }

  #growRows(length: number): void {
    if (length <= this.rules.length) return;
    this.offsets = grow(this.offsets, length);
    this.rules = grow(this.rules, length);
  }

  beginFunction(start: number, end: number, margin = 0): void {
    if (this.count + 1 >= this.starts.length) this.#growFunctions(this.starts.length * 2);
    this.starts[this.count] = start;
    this.ends[this.count] = end;
    this.margin[this.count] = margin;
    this.firstRow[this.count] = this.rowCount;
    this.#previousRule = -1;
  }

  /**
   * From `address` on; rows at or past the function's end and repeated rules are dropped.
   *
   * @throws TableTooLarge
   */
  addRow(address: number, rule: number): void {
    const offset = address - this.starts[this.count]!;
    if (rule === this.#previousRule || address >= this.ends[this.count]! || offset > MAX_OFFSET) return;
    // a later row for the same address replaces the earlier one
    const last = this.rowCount - 1;
    if (last >= this.firstRow[this.count]! && this.offsets[last] === offset) {
      this.rules[last] = rule;
      this.#previousRule = rule;
      return;
    }
    if (this.rowCount >= MAX_ROWS) throw new TableTooLarge(`it has more than ${this.rowCount} rows`);
    if (this.rowCount >= this.rules.length) this.#growRows(this.rules.length * 2);
    this.offsets[this.rowCount] = offset;
    this.rules[this.rowCount] = rule;
    this.rowCount++;
    this.#previousRule = rule;
  }

  endFunction(): void {
    this.count++;
    this.firstRow[this.count] = this.rowCount;
  }

  /** Takes back the function that was begun. */
  dropFunction(): void {
    this.rowCount = this.firstRow[this.count]!;
  }
}
