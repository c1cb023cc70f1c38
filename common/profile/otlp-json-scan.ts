/** A first look at a request in JSON, before objects are made of it: see otlp-scan.ts. */
import { OtlpError } from './otlp-scan.ts';

/** Opening braces and brackets: each becomes an object, and a real one takes 20 characters and more. */
const MAX_OBJECTS = 3_000_000;
/** Keys of objects: each that is new costs a shape, or an entry of a table. */
const MAX_KEYS = 6_000_000;
/** Three levels for each of the 32 that a value of an attribute may have, and what is around it. */
const MAX_DEPTH = 120;

const [QUOTE, BACKSLASH, COLON] = [0x22, 0x5c, 0x3a];
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/** @throws OtlpError for what would cost too much to parse */
export function scanJson(json: string): void {
  let [objects, keys, depth] = [0, 0, 0];
  for (let i = 0; i < json.length; i++) {
    const code = json.charCodeAt(i);
    if (code === QUOTE) i = endOfText(json, i);
    else if (code === OPEN_ARRAY || code === OPEN_OBJECT) {
      objects++;
      if (++depth > MAX_DEPTH) throw new OtlpError(`this request is nested deeper than ${MAX_DEPTH} levels`);
    } else if (code === CLOSE_ARRAY || code === CLOSE_OBJECT) depth--;
    else if (code === COLON) keys++;
    if (objects > MAX_OBJECTS || keys > MAX_KEYS) throw tooMany(json.length);
  }
}

const tooMany = (length: number): OtlpError =>
  new OtlpError(
    `this request of ${length} characters holds more than ${MAX_OBJECTS} objects or ${MAX_KEYS} keys: send smaller requests`,
  );

/** Index of the quote that ends the text, or of the last character. */
function endOfText(json: string, start: number): number {
  for (let at = start + 1; ; at++) {
    const end = json.indexOf('"', at);
    if (end === -1) return json.length;
    let slashes = 0;
    while (json.charCodeAt(end - 1 - slashes) === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return end;
    at = end;
  }
}
