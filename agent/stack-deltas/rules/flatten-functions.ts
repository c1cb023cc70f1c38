/**
 * Functions to one ascending list of rows: gaps become invalid rows, repeats are dropped. Where functions overlap,
 * the one that begins last holds, as in an unwinder that searches a table of starts; what encloses it goes on
 * behind it. Of two that begin at once the first in the file holds.
 */

import { lastAtOrBelow } from '../../../common/base/search.ts';
import type { FunctionRows } from './rows.ts';

export interface FlatRows {
  addresses: Float64Array;
  /** 0: nothing is known from here on. */
  ruleIds: Uint16Array;
  /** Functions that begin inside another one. */
  overlaps: number;
}

/** Whether an address lies in one of the functions so far. */
export function coverage(rows: FunctionRows): (address: number) => boolean {
  const order = rows.byStart();
  const starts = new Float64Array(order.length);
  /** How far the functions reach that begin no later. */
  const reach = new Float64Array(order.length);
  for (let i = 0; i < order.length; i++) {
    starts[i] = rows.starts[order[i]!]!;
    reach[i] = Math.max(i > 0 ? reach[i - 1]! : 0, rows.ends[order[i]!]!);
  }
  return (address) => {
    const i = lastAtOrBelow(starts, address);
    return i >= 0 && address < reach[i]!;
  };
}

export function flattenFunctions(rows: FunctionRows): FlatRows {
  const joiner = new Joiner(rows);
  for (const f of rows.byStart()) joiner.open(f);
  return joiner.finish();
}

class Joiner {
  readonly #rows: FunctionRows;
  readonly #addresses: Float64Array;
  readonly #ruleIds: Uint16Array;
  #count = 0;
  /** All below is written. */
  #at = 0;
  /** Functions that hold at #at, innermost last, and the row of each that was written last. */
  readonly #open: number[] = [];
  readonly #row: Uint32Array;
  #overlaps = 0;

  constructor(rows: FunctionRows) {
    this.#rows = rows;
    // each function is resumed at most once for each that it encloses
    this.#addresses = new Float64Array(rows.rowCount + 2 * rows.count + 1);
    this.#ruleIds = new Uint16Array(this.#addresses.length);
    this.#row = rows.firstRow.slice(0, rows.count);
  }

  open(f: number): void {
    const start = this.#rows.starts[f]!;
    const early = Math.max(this.#at, start - this.#rows.margin[f]!);
    this.#advance(early);
    // only where nothing else holds: assembly code already begins a signal's FDE one byte early
    if (this.#open.length > 0) this.#advance(start);
    if (this.#open.length > 0) this.#overlaps++;
    this.#open.push(f);
  }

  finish(): FlatRows {
    this.#advance(Number.MAX_SAFE_INTEGER);
    return {
      addresses: this.#addresses.subarray(0, this.#count),
      ruleIds: this.#ruleIds.subarray(0, this.#count),
      overlaps: this.#overlaps,
    };
  }

  #advance(to: number): void {
    while (this.#open.length > 0) {
      const f = this.#open.at(-1)!;
      const end = Math.min(this.#rows.ends[f]!, to);
      if (end > this.#at) {
        this.#write(f, this.#at, end);
        this.#at = end;
      }
      if (this.#rows.ends[f]! > to) return;
      this.#open.pop();
      if (this.#open.length === 0) this.#goOnBehind(f, to);
    }
    if (this.#at >= to) return;
    if (this.#count > 0) this.#push(this.#at, 0);
    this.#at = to;
  }

  #goOnBehind(f: number, to: number): void {
    const end = Math.min(this.#rows.ends[f]! + this.#rows.margin[f]!, to);
    if (end <= this.#at) return;
    this.#write(f, this.#at, end);
    this.#at = end;
  }

  #write(f: number, from: number, to: number): void {
    const { offsets, rules, firstRow } = this.#rows;
    const start = this.#rows.starts[f]!;
    const last = firstRow[f + 1]! - 1;
    let row = this.#row[f]!;
    while (row < last && start + offsets[row + 1]! <= from) row++;
    this.#push(from, rules[row]!);
    while (row < last && start + offsets[row + 1]! < to) {
      row++;
      this.#push(start + offsets[row]!, rules[row]!);
    }
    this.#row[f] = row;
  }

  #push(address: number, rule: number): void {
    const n = this.#count;
    if (n > 0 ? this.#ruleIds[n - 1] === rule : rule === 0) return;
    this.#addresses[n] = address;
    this.#ruleIds[n] = rule;
    this.#count = n + 1;
  }
}
