/**
 * HotSpot's compressed numbers (UNSIGNED5): one to five bytes, six bits more with each. A byte below 192 is the last one;
 * a larger one stands for itself, and more follow. From JDK 20 on no byte is 0: each is one more than what it stands for.
 */
import { CannotRead } from '../runtime-memory.ts';

const LAST_BELOW = 192;
const MAX_BYTES = 5;
/** Of the JDK. */
const FIRST_WITHOUT_ZERO = 20;

export class Unsigned5 {
  readonly #bytes: Uint8Array;
  readonly #excess: number;
  at: number;

  constructor(bytes: Uint8Array, at: number, major: number) {
    this.#bytes = bytes;
    this.#excess = major >= FIRST_WITHOUT_ZERO ? 1 : 0;
    this.at = at;
  }

  byte(): number {
    const byte = this.#bytes[this.at++];
    if (byte === undefined) throw new CannotRead('malformed');
    return byte;
  }

  /** 32 bits, as HotSpot has them: what does not fit is cut. */
  unsigned(): number {
    let value = 0;
    for (let i = 0; i < MAX_BYTES; i++) {
      const byte = this.byte();
      if (byte < this.#excess) throw new CannotRead('malformed');
      value = (value + Math.imul(byte - this.#excess, 1 << (6 * i))) | 0;
      if (byte < LAST_BELOW) break;
    }
    return value >>> 0;
  }

  /** The sign is the lowest bit. */
  signed(): number {
    const value = this.unsigned();
    return (value >>> 1) ^ -(value & 1);
  }
}
