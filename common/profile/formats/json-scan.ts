import type { ReadBudget } from '../model/read-limits.ts';

/** Of an object or array that `JSON.parse` makes, and of a value or key in one. */
const CONTAINER_BYTES = 64;
const VALUE_BYTES = 24;
/** The text is held as bytes and as a string, which may have two bytes for each of its characters. */
const BYTES_PER_BYTE = 3;
/** Of real profiles: a dozen. Deeper nesting than that is an attack on whoever walks it. */
const MAX_NESTING = 512;

const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a];
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/** Counts what JSON would become, as its bytes come and before any of it does. It checks no syntax. */
export class JsonScan {
  readonly #budget: ReadBudget;
  #isText = false;
  #isEscaped = false;
  #nesting = 0;

  constructor(budget: ReadBudget) {
    this.#budget = budget;
  }

  /** @throws ReadLimitError, and Error for what is nested too deep */
  push(bytes: Uint8Array): void {
    let [containers, values] = [0, 0];
    for (let i = 0; i < bytes.length; i++) {
      const byte = bytes[i]!;
      if (this.#isText) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (byte === BACKSLASH) this.#isEscaped = true;
        else if (byte === QUOTE) this.#isText = false;
      } else if (byte === QUOTE) this.#isText = true;
      else if (byte === COMMA || byte === COLON) values++;
      else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
        containers++;
        this.#nesting++;
        if (this.#nesting > MAX_NESTING) throw new Error(`it is nested deeper than ${MAX_NESTING} levels`);
      } else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) this.#nesting--;
    }
    this.#budget.spend('bytes', BYTES_PER_BYTE * bytes.length, bytes.length);
    this.#budget.spend('values', CONTAINER_BYTES * containers + VALUE_BYTES * values, containers + values);
  }
}
