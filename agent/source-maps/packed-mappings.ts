/**
 * The mappings of a source map in columns of numbers. As the array a segment that decoders make, they take six times as
 * much, and maps stay for as long as their scripts run.
 */

/** Generated column; then source, its line and column; then the name. All from 0. */
type Segment = readonly number[];

export interface Mapped {
  /** Of the generated code, where the segment begins. */
  column: number;
  source: number;
  sourceLine: number;
  sourceColumn: number;
  /** NO_NAME where it has none. */
  name: number;
}

export const NO_NAME = -1;
/** As the source of code that comes from none. */
const NO_SOURCE = -1;

const COLUMN = 0;
const SOURCE = 1;
const SOURCE_LINE = 2;
const SOURCE_COLUMN = 3;
const NAME = 4;
const NUMBERS = 5;

export class PackedMappings {
  /** By line: its first segment; one more than there are lines. */
  readonly #starts: Uint32Array;
  readonly #numbers: Int32Array;

  /** Lines of segments in ascending order of their columns. */
  constructor(lines: readonly (readonly Segment[])[]) {
    this.#starts = new Uint32Array(lines.length + 1);
    for (let i = 0; i < lines.length; i++) this.#starts[i + 1] = this.#starts[i]! + lines[i]!.length;
    this.#numbers = new Int32Array(this.#starts.at(-1)! * NUMBERS);
    let at = 0;
    for (const line of lines)
      for (const [column, source = NO_SOURCE, sourceLine = 0, sourceColumn = 0, name = NO_NAME] of line) {
        this.#numbers.set([column ?? 0, source, sourceLine, sourceColumn, name], at);
        at += NUMBERS;
      }
  }

  get byteLength(): number {
    return this.#starts.byteLength + this.#numbers.byteLength;
  }

  /**
   * The segment that holds a place of the generated code, the first one that begins there if several do. Undefined where
   * none does, or what it says is that the code comes from no source.
   */
  find(line: number, column: number): Mapped | undefined {
    if (line < 0 || line + 1 >= this.#starts.length) return undefined;
    const first = this.#starts[line]!;
    let at = this.#firstFrom(first, this.#starts[line + 1]!, column);
    const isExact = at < this.#starts[line + 1]! && this.#number(at, COLUMN) === column;
    if (!isExact) at--;
    if (at < first || this.#number(at, SOURCE) === NO_SOURCE) return undefined;
    return {
      column: this.#number(at, COLUMN),
      source: this.#number(at, SOURCE),
      sourceLine: this.#number(at, SOURCE_LINE),
      sourceColumn: this.#number(at, SOURCE_COLUMN),
      name: this.#number(at, NAME),
    };
  }

  /** Of the segments from `low` to `high`: the first one that does not begin before the column, or `high`. */
  #firstFrom(low: number, high: number, column: number): number {
    let [from, to] = [low, high];
    while (from < to) {
      const middle = (from + to) >>> 1;
      if (this.#number(middle, COLUMN) < column) from = middle + 1;
      else to = middle;
    }
    return from;
  }

  #number(segment: number, which: number): number {
    return this.#numbers[segment * NUMBERS + which]!;
  }
}
