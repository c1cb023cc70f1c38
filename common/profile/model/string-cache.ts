import { LOOSE_STRINGS, type StringsById } from './frame-columns.ts';

/** More bytes are not remembered: requests of one sender repeat far fewer. */
const MAX_BYTES = 8 << 20;
const MAX_LENGTH = 2048;
/**
 * Whoever makes texts with one hash on purpose has them made each time: a text that would stand further away from where its hash
 * leads is not remembered.
 */
const MAX_STEPS = 64;
const FIRST_SLOTS = 1024;
const FIRST_BYTES = 64 << 10;

/**
 * Strings of one request are mostly those of the one before. They are found by their bytes, so that a known one costs no new
 * string, and is the same string: what is looked up by it later need not hash it anew.
 */
export class StringCache implements StringsById {
  generation = 0;
  /** Open addressing; a slot holds an id, 0 when free. */
  #slots = new Int32Array(FIRST_SLOTS);
  readonly #strings = [''];
  readonly #hashes = [0];
  /** Where the bytes of each text begin among all. */
  readonly #starts = [0];
  /** Of this request, which are not remembered. */
  #loose: string[] = [];
  #bytes = Buffer.alloc(FIRST_BYTES);
  #end = 0;
  #isFull = false;

  /** Strings that are remembered. */
  get count(): number {
    return this.#strings.length;
  }

  /** Strings that are not remembered may be forgotten from here on, and all of them where no more could be kept. */
  beginRequest(): void {
    this.#loose = [];
    if (this.#isFull) this.#forget();
  }

  string(id: number): string {
    return id < LOOSE_STRINGS ? this.#strings[id]! : this.#loose[id - LOOSE_STRINGS]!;
  }

  /** What the bytes say in UTF-8. */
  read(bytes: Buffer, start: number, end: number): string {
    return this.string(this.idOf(bytes, start, end));
  }

  /** Id of what the bytes say in UTF-8. */
  idOf(bytes: Buffer, start: number, end: number): number {
    const length = end - start;
    if (length === 0) return 0;
    if (length > MAX_LENGTH) return this.#keepLoose(bytes.toString('utf8', start, end));
    const hash = hashOf(bytes, start, end);
    const mask = this.#slots.length - 1;
    let slot = hash & mask;
    let steps = 0;
    for (let id = this.#slots[slot]!; id !== 0 && steps < MAX_STEPS; id = this.#slots[slot]!) {
      if (this.#hashes[id] === hash && this.#isSame(id, bytes, start, length)) return id;
      slot = (slot + 1) & mask;
      steps++;
    }
    const text = bytes.toString('utf8', start, end);
    if (this.#end + length > MAX_BYTES) this.#isFull = true;
    if (steps >= MAX_STEPS || this.#isFull) return this.#keepLoose(text);
    return this.#add(text, hash, bytes.subarray(start, end));
  }

  #keepLoose(text: string): number {
    return this.#loose.push(text) - 1 + LOOSE_STRINGS;
  }

  #isSame(id: number, bytes: Buffer, start: number, length: number): boolean {
    const from = this.#starts[id]!;
    if ((this.#starts[id + 1] ?? this.#end) - from !== length) return false;
    const own = this.#bytes;
    for (let i = 0; i < length; i++) if (own[from + i] !== bytes[start + i]) return false;
    return true;
  }

  #add(text: string, hash: number, bytes: Buffer): number {
    if (2 * this.#strings.length >= this.#slots.length) this.#enlarge();
    if (this.#end + bytes.length > this.#bytes.length) {
      const larger = Buffer.alloc(2 * this.#bytes.length);
      larger.set(this.#bytes);
      this.#bytes = larger;
    }
    this.#starts.push(this.#end);
    this.#hashes.push(hash);
    const id = this.#strings.push(text) - 1;
    this.#place(id);
    this.#bytes.set(bytes, this.#end);
    this.#end += bytes.length;
    return id;
  }

  #forget(): void {
    this.#slots = new Int32Array(FIRST_SLOTS);
    this.#bytes = Buffer.alloc(FIRST_BYTES);
    this.#end = 0;
    for (const column of [this.#strings, this.#hashes, this.#starts]) column.length = 1;
    this.#isFull = false;
    this.generation++;
  }

  #enlarge(): void {
    this.#slots = new Int32Array(2 * this.#slots.length);
    for (let id = 1; id < this.#strings.length; id++) this.#place(id);
  }

  #place(id: number): void {
    const mask = this.#slots.length - 1;
    let slot = this.#hashes[id]! & mask;
    while (this.#slots[slot] !== 0) slot = (slot + 1) & mask;
    this.#slots[slot] = id;
  }
}

/** Four bytes a step; the low bits, by which a slot is found, take the high ones in. */
function hashOf(bytes: Buffer, start: number, end: number): number {
  let hash = end - start;
  let i = start;
  for (; i + 3 < end; i += 4) {
    const word = bytes[i]! | (bytes[i + 1]! << 8) | (bytes[i + 2]! << 16) | (bytes[i + 3]! << 24);
    hash = Math.imul(hash ^ word, 0x9e3779b1);
    hash ^= hash >>> 15;
  }
  for (; i < end; i++) hash = Math.imul(hash ^ bytes[i]!, 0x0100_0193);
  return hash ^ (hash >>> 15);
}
