/**
 * What was answered, as bytes outside the heap: a hundred thousand answers have hundreds of megabytes, which a garbage
 * collector would move about again and again.
 */
const CHUNK_BYTES = 4 << 20;
/** Of one UTF-16 code unit in UTF-8. */
const MAX_UNIT_BYTES = 3;

/** What a thread hands over. */
export interface AnswerParts {
  chunks: Uint8Array[];
  /** By answer: its chunk, where it begins there, and where it ends. */
  places: Uint32Array;
}

export class AnswerText {
  readonly #chunks: Buffer[] = [];
  readonly #places: Uint32Array;
  #used = 0;
  #count = 0;

  constructor(capacity: number) {
    this.#places = new Uint32Array(capacity * 3);
  }

  add(text: string): void {
    const start = this.#room(text.length * MAX_UNIT_BYTES);
    const chunk = this.#chunks.length - 1;
    this.#used = start + this.#chunks[chunk]!.write(text, start);
    this.#places.set([chunk, start, this.#used], 3 * this.#count++);
  }

  parts(): AnswerParts {
    return { chunks: this.#chunks, places: this.#places };
  }

  #room(bytes: number): number {
    const last = this.#chunks.at(-1);
    if (last && this.#used + bytes <= last.length) return this.#used;
    this.#chunks.push(Buffer.from(new ArrayBuffer(Math.max(CHUNK_BYTES, bytes))));
    return 0;
  }
}

export function answerAt({ chunks, places }: AnswerParts, i: number): Uint8Array {
  return chunks[places[3 * i]!]!.subarray(places[3 * i + 1]!, places[3 * i + 2]!);
}
