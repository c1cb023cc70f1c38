/**
 * The texts of a profile's functions as IDs of a table of strings. They are kept for the next profile where that has the same
 * table of functions, to which entries are only added, as the agent's has: then no function is visited again.
 */

import type { Func } from '../model/profile.ts';
import type { StringTable } from './otlp-tables.ts';

const UNKNOWN = -1;
export const NAME = 0;
export const SYSTEM_NAME = 1;
export const FILENAME = 2;
export const START_LINE = 3;
const NUMBERS = 4;

export class FunctionStrings {
  readonly #strings: StringTable;
  #functions: readonly Func[] = [];
  #generation = 0;
  /** Lines may exceed 32 bits. */
  #numbers = new Float64Array(0);

  constructor(strings: StringTable) {
    this.#strings = strings;
  }

  begin(functions: readonly Func[]): void {
    const { generation } = this.#strings;
    const isKnown = functions === this.#functions && generation === this.#generation;
    const before = this.#numbers;
    const size = functions.length * NUMBERS;
    if (!isKnown || before.length < size) {
      this.#numbers = new Float64Array(isKnown ? size * 2 : size).fill(UNKNOWN);
      if (isKnown) this.#numbers.set(before);
    }
    this.#functions = functions;
    this.#generation = generation;
  }

  /** The ID of a text, or the line, of a function by its index. */
  get(index: number, field: number): number {
    const at = index * NUMBERS;
    if (this.#numbers[at] === UNKNOWN) this.#read(this.#functions[index]!, at);
    return this.#numbers[at + field]!;
  }

  #read({ name, systemName, filename, startLine }: Func, at: number): void {
    this.#numbers[at + NAME] = this.#strings.idOf(name);
    this.#numbers[at + SYSTEM_NAME] = this.#strings.idOf(systemName);
    this.#numbers[at + FILENAME] = this.#strings.idOf(filename);
    this.#numbers[at + START_LINE] = startLine;
  }
}
