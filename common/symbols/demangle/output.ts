/** What a demangler prints into, and the bounds within which it works: names come from strangers' files. */

/** Longest mangled name that is looked at; the longest of libLLVM has 2,700. */
export const MAX_MANGLED = 8192;
/** Longest name that is made: substitutions let a short input describe an endless output. */
const MAX_OUTPUT = 32 * 1024;
/** Deepest nesting of types and names. */
const MAX_DEPTH = 256;
/** Nodes printed, also such that print nothing. */
const MAX_STEPS = 200_000;

/** The name is not mangled by the rules, or leaves the bounds: it is shown as it is. */
export class NotDemangled extends Error {
  override readonly name = 'NotDemangled';
}

/**
 * Bounds the depth and the number of steps of a recursive walk. A name that leaves them is given up as a whole, so that
 * nothing leaves what it did not finish.
 */
export class Budget {
  #depth = 0;
  #steps = 0;

  enter(): void {
    if (++this.#depth > MAX_DEPTH || ++this.#steps > MAX_STEPS) throw new NotDemangled('too deep');
  }

  leave(): void {
    this.#depth--;
  }
}

/** In pieces: text that is looked at while it grows would be copied each time. */
export class Output {
  readonly #pieces: string[] = [];
  #length = 0;

  add(text: string): void {
    if (text === '') return;
    this.#pieces.push(text);
    this.#length += text.length;
    if (this.#length > MAX_OUTPUT) throw new NotDemangled('too long');
  }

  /** Before what was added since there were so many pieces. */
  insert(pieces: number, text: string): void {
    this.#pieces.splice(pieces, 0, text);
    this.#length += text.length;
  }

  get text(): string {
    return this.#pieces.join('');
  }

  /** Grows with everything that is added. */
  get pieces(): number {
    return this.#pieces.length;
  }

  /** Takes back what was added since there were so many pieces. */
  cut(pieces: number): void {
    while (this.#pieces.length > pieces) this.#length -= this.#pieces.pop()!.length;
  }

  /** The last character, '' at the start. */
  get last(): string {
    const piece = this.#pieces.at(-1);
    return piece === undefined ? '' : piece[piece.length - 1]!;
  }
}
