/** More characters are not remembered: requests of one sender repeat far fewer. */
const MAX_CHARACTERS = 8 << 20;
const MAX_LENGTH = 2048;
const FIRST_SLOTS = 1024;

/**
 * Texts of one request are mostly those of the one before. They are found by their bytes, so that a known one costs no new
 * string, and is the same string: what is looked up by it later need not hash it anew.
 */
export class TextCache {
  /** Open addressing. */
  #slots: (string | undefined)[] = new Array(FIRST_SLOTS);
  #hashes = new Int32Array(FIRST_SLOTS);
  #count = 0;
  #characters = 0;

  /** What the bytes say in UTF-8. */
  read(bytes: Buffer, start: number, end: number): string {
    const length = end - start;
    if (length === 0) return '';
    let [hash, all] = [length, 0];
    for (let i = start; i < end; i++) {
      const byte = bytes[i]!;
      all |= byte;
      hash = Math.imul(hash ^ byte, 0x0100_0193);
    }
    if (all >= 0x80 || length > MAX_LENGTH) return bytes.toString('utf8', start, end);
    const mask = this.#slots.length - 1;
    let slot = (hash ^ (hash >>> 15)) & mask;
    for (let known = this.#slots[slot]; known !== undefined; known = this.#slots[slot]) {
      if (this.#hashes[slot] === hash && isSame(known, bytes, start, length)) return known;
      slot = (slot + 1) & mask;
    }
    const text = bytes.toString('latin1', start, end);
    this.#add(text, hash, slot);
    return text;
  }

  #add(text: string, hash: number, slot: number): void {
    this.#slots[slot] = text;
    this.#hashes[slot] = hash;
    this.#characters += text.length;
    this.#count++;
    if (this.#characters > MAX_CHARACTERS) this.#resize(FIRST_SLOTS);
    else if (2 * this.#count > this.#slots.length) this.#resize(2 * this.#slots.length);
  }

  /** To more slots, with what was there; to as few as at first, without. */
  #resize(size: number): void {
    const [slots, hashes] = [this.#slots, this.#hashes];
    this.#slots = new Array(size);
    this.#hashes = new Int32Array(size);
    if (size === FIRST_SLOTS) {
      this.#count = 0;
      this.#characters = 0;
      return;
    }
    for (const [i, text] of slots.entries()) {
      if (text === undefined) continue;
      const hash = hashes[i]!;
      let slot = (hash ^ (hash >>> 15)) & (size - 1);
      while (this.#slots[slot] !== undefined) slot = (slot + 1) & (size - 1);
      this.#slots[slot] = text;
      this.#hashes[slot] = hash;
    }
  }
}

/** Of a text of ASCII. */
function isSame(text: string, bytes: Buffer, start: number, length: number): boolean {
  if (text.length !== length) return false;
  for (let i = 0; i < length; i++) if (text.charCodeAt(i) !== bytes[start + i]) return false;
  return true;
}
