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

/** Bounds the depth and the number of steps of a recursive walk. */
export class Budget {
  #depth = 0;
  #steps = 0;

  run<T>(step: () => T): T {
    if (++this.#depth > MAX_DEPTH || ++this.#steps > MAX_STEPS) throw new NotDemangled('too deep');
    try {
      return step();
    } finally {
      this.#depth--;
    }
  }
}

export class Output {
  text = '';

  add(text: string): void {
    this.text += text;
    if (this.text.length > MAX_OUTPUT) throw new NotDemangled('too long');
  }

  /** The last character, '' at the start. */
  get last(): string {
    return this.text.slice(-1);
  }
}
