/** A first look at a request in JSON, before objects are made of it: see otlp-scan.ts. */
import { OtlpError } from './otlp-scan.ts';

/** What may be made of a text. */
export interface JsonLimits {
  /** Opening braces and brackets: each becomes an object, and a real one takes 20 characters and more. */
  objects: number;
  /** Keys of objects: each that is new costs a shape, or an entry of a table. */
  keys: number;
  /** What commas part: numbers most of all. */
  items: number;
}

/** What is parsed while others wait: less than a second. */
export const REQUEST_LIMITS: JsonLimits = { objects: 400_000, keys: 800_000, items: 3_000_000 };
/** A file, read by a process of its own or a person's command. */
export const FILE_LIMITS: JsonLimits = { objects: 3_000_000, keys: 6_000_000, items: 24_000_000 };
/** Three levels for each of the 32 that a value of an attribute may have, and what is around it. */
const MAX_DEPTH = 120;

const [QUOTE, BACKSLASH, COLON, COMMA] = [0x22, 0x5c, 0x3a, 0x2c];
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/** @throws OtlpError for what would cost too much to parse */
export function scanJson(json: string, limits: JsonLimits): void {
  let [objects, keys, items, depth] = [0, 0, 0, 0];
  for (let i = 0; i < json.length; i++) {
    const code = json.charCodeAt(i);
    if (code === QUOTE) i = endOfText(json, i);
    else if (code === OPEN_ARRAY || code === OPEN_OBJECT) {
      objects++;
      if (++depth > MAX_DEPTH) throw new OtlpError(`this request is nested deeper than ${MAX_DEPTH} levels`);
    } else if (code === CLOSE_ARRAY || code === CLOSE_OBJECT) depth--;
    else if (code === COLON) keys++;
    else if (code === COMMA) items++;
    if (objects > limits.objects || keys > limits.keys || items > limits.items)
      throw tooMany(json.length, limits);
  }
}

const tooMany = (length: number, { objects, keys, items }: JsonLimits): OtlpError =>
  new OtlpError(
    `this request of ${length} characters holds more than ${objects} objects, ${keys} keys or ${items} items: ` +
      'send smaller requests, or protobuf',
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
