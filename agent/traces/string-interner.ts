/** One string for all equal ones: a worker sends a copy of the path of a file with each of its addresses. */
export class StringInterner {
  #known = new Map<string, string>();

  intern(text: string): string {
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    this.#known.set(text, text);
    return text;
  }

  forget(): void {
    this.#known = new Map();
  }
}
