/** Growing columns of (address, rule) rows, grouped by function. */
import { MAX_IMAGE_BYTES, TableTooLarge } from './pack.ts';

/** More would not fit into a table. A few bytes of a file can repeat many rows. */
const MAX_ROWS = MAX_IMAGE_BYTES / 4;

const grow = <T extends Float64Array | Uint16Array | Uint32Array | Uint8Array>(column: T): T => {
  const larger = new (column.constructor as new (n: number) => T)(column.length * 2);
  larger.set(column as never);
  return larger;
};

export class FunctionRows {
  addresses = new Float64Array(4096);
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

  beginFunction(start: number, end: number, margin = 0): void {
    if (this.count + 1 >= this.starts.length) {
      this.starts = grow(this.starts);
      this.ends = grow(this.ends);
      this.margin = grow(this.margin);
      this.firstRow = grow(this.firstRow);
    }
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
    if (rule === this.#previousRule || address >= this.ends[this.count]!) return;
    // a later row for the same address replaces the earlier one
    const last = this.rowCount - 1;
    if (last >= this.firstRow[this.count]! && this.addresses[last] === address) {
      this.rules[last] = rule;
      this.#previousRule = rule;
      return;
    }
    if (this.rowCount >= this.addresses.length) {
      if (this.rowCount >= MAX_ROWS) throw new TableTooLarge(`it has more than ${this.rowCount} rows`);
      this.addresses = grow(this.addresses);
      this.rules = grow(this.rules);
    }
    this.addresses[this.rowCount] = address;
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
