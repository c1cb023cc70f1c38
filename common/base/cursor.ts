/**
 * A reading position in foreign bytes, little endian. Every read is checked: {@link OutOfBounds} says that the
 * input refers to bytes that do not exist, and costs the caller one item, never the process.
 */
import { OutOfBounds } from './byte-source.ts';

const MAX_LEB_BYTES = 10;

export class Cursor {
  readonly bytes: Uint8Array;
  readonly #view: DataView;
  /** Next byte to read. */
  at: number;
  /** One past the last byte that may be read. */
  end: number;

  constructor(bytes: Uint8Array, at = 0, end = bytes.length) {
    this.bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.at = at;
    this.end = Math.min(end, bytes.length);
  }

  get left(): number {
    return this.end - this.at;
  }

  /** Moves over `n` bytes and returns where they start. */
  skip(n: number): number {
    const at = this.at;
    if (!(n >= 0 && at >= 0 && n <= this.end - at))
      throw new OutOfBounds(`${n} bytes at ${at} of ${this.end}`);
    this.at = at + n;
    return at;
  }

  u8(): number {
    return this.bytes[this.skip(1)]!;
  }

  i8(): number {
    return this.#view.getInt8(this.skip(1));
  }

  u16(): number {
    return this.#view.getUint16(this.skip(2), true);
  }

  i16(): number {
    return this.#view.getInt16(this.skip(2), true);
  }

  u32(): number {
    return this.#view.getUint32(this.skip(4), true);
  }

  i32(): number {
    return this.#view.getInt32(this.skip(4), true);
  }

  /** Exact up to 2^53; larger values lose their low bits. */
  u64(): number {
    const at = this.skip(8);
    return this.#view.getUint32(at + 4, true) * 2 ** 32 + this.#view.getUint32(at, true);
  }

  i64(): number {
    const at = this.skip(8);
    return this.#view.getInt32(at + 4, true) * 2 ** 32 + this.#view.getUint32(at, true);
  }

  uleb(): number {
    // nearly all numbers have one byte
    const { at } = this;
    if (at >= 0 && at < this.end) {
      const byte = this.bytes[at]!;
      if (byte < 0x80) {
        this.at = at + 1;
        return byte;
      }
    }
    return this.#longUleb();
  }

  #longUleb(): number {
    let value = 0;
    let scale = 1;
    for (let i = 0; i < MAX_LEB_BYTES; i++) {
      const byte = this.u8();
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      scale *= 128;
    }
    throw new OutOfBounds(`a LEB128 number of more than ${MAX_LEB_BYTES} bytes at ${this.at}`);
  }

  sleb(): number {
    let value = 0;
    let scale = 1;
    for (let i = 0; i < MAX_LEB_BYTES; i++) {
      const byte = this.u8();
      // the last digit carries the sign: no sum on the way is larger than the result
      if (byte < 0x80) return value + (byte & 0x40 ? byte - 0x80 : byte) * scale;
      value += (byte & 0x7f) * scale;
      scale *= 128;
    }
    throw new OutOfBounds(`a LEB128 number of more than ${MAX_LEB_BYTES} bytes at ${this.at}`);
  }

  /** Bytes up to a NUL, which is consumed. */
  cstring(): string {
    const start = this.at;
    const nul = this.bytes.indexOf(0, start);
    if (nul < 0 || nul >= this.end) throw new OutOfBounds(`a string without an end at ${start}`);
    this.at = nul + 1;
    let text = '';
    for (let i = start; i < nul; i++) text += String.fromCharCode(this.bytes[i]!);
    return text;
  }
}
