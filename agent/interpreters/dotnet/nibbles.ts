/** Numbers in nibbles, of which the low one of a byte comes first, and in bits. */
import { CannotRead } from '../runtime-memory.ts';

const MAX_NIBBLES = 11;
const WORD_NIBBLES = 16;

/** Each number throws CannotRead behind the end. */
export class Nibbles {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get bytesRead(): number {
    return (this.#at + 1) >> 1;
  }

  /** Three bits a nibble, the highest ones first; the fourth says that there are more. */
  number(): number {
    let value = 0;
    for (let i = 0; i < MAX_NIBBLES; i++) {
      const nibble = this.#next();
      value = value * 8 + (nibble & 7);
      if (nibble < 8) return value;
    }
    throw new CannotRead('malformed');
  }

  /** The lowest bit is the sign. */
  signed(): number {
    const value = this.number();
    const size = Math.floor(value / 2);
    return value % 2 === 0 ? size : -size;
  }

  /** 64 bits; what is not an address is larger than any. */
  word(): number {
    let value = 0;
    for (let i = 0; i < WORD_NIBBLES; i++) value += this.#next() * 16 ** i;
    return value;
  }

  /** From the next whole byte on. */
  restAsBits(): Bits {
    return new Bits(this.#bytes, this.bytesRead * 8);
  }

  #next(): number {
    const byte = this.#bytes[this.#at >> 1];
    if (byte === undefined) throw new CannotRead('malformed');
    return this.#at++ % 2 === 0 ? byte & 15 : byte >> 4;
  }
}

/** Numbers of any width up to 32 bits, the lowest bit first. */
class Bits {
  readonly #bytes: Uint8Array;
  #at: number;

  constructor(bytes: Uint8Array, at: number) {
    this.#bytes = bytes;
    this.#at = at;
  }

  /** Throws CannotRead behind the end. */
  take(width: number): number {
    let value = 0;
    for (let i = 0; i < width; i++, this.#at++) {
      const byte = this.#bytes[this.#at >> 3];
      if (byte === undefined) throw new CannotRead('malformed');
      value += ((byte >> (this.#at & 7)) & 1) * 2 ** i;
    }
    return value;
  }
}
