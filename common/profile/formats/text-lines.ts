/** Text line by line, as its bytes come: such files are larger than the longest string. */

const NEWLINE = 0x0a;
/** Longer than a stack of a hundred thousand C++ functions. */
const MAX_LINE_BYTES = 64 * 2 ** 20;
const NONE = Buffer.alloc(0);

/** Takes lines without their ends; the number counts from 1. */
export type TakeLine = (line: string, number: number) => void;

export class TextLines {
  readonly #take: TakeLine;
  #rest: Buffer[] = [];
  #restBytes = 0;
  #number = 0;

  constructor(take: TakeLine) {
    this.#take = take;
  }

  /** The bytes may be overwritten afterwards. @throws Error for a line that is too long, and what `take` throws */
  push(chunk: Uint8Array): void {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length);
    let start = 0;
    for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, start)) {
      this.#end(bytes.subarray(start, end));
      start = end + 1;
      for (; bytes[start] === NEWLINE; start++) this.#take('', ++this.#number);
    }
    if (start < bytes.length) this.#keep(bytes.subarray(start));
  }

  /** What follows the last line's end. */
  finish(): void {
    if (this.#restBytes > 0) this.#end(NONE);
  }

  #end(last: Buffer): void {
    this.#number++;
    const line = this.#restBytes === 0 ? last : Buffer.concat([...this.#rest, last]);
    this.#rest = [];
    this.#restBytes = 0;
    const text = line.toString('utf8');
    this.#take(this.#number === 1 ? text.replace(/^\ufeff/, '') : text, this.#number);
  }

  #keep(part: Buffer): void {
    this.#restBytes += part.length;
    if (this.#restBytes > MAX_LINE_BYTES)
      throw new Error(`line ${this.#number + 1} has more than ${MAX_LINE_BYTES / 2 ** 20} MiB`);
    this.#rest.push(Buffer.from(part));
  }
}
