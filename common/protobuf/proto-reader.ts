/** Reads protobuf where it lies, without an object for a message. A caller asks for a tag, then for what the tag says. */

/** The bytes end too early, or a number is too long. */
export class BadProtobuf extends Error {}

/** Tag of a field: its number and how it is written. */
export const varintTag = (field: number): number => field * 8;
export const fixed64Tag = (field: number): number => field * 8 + 1;
export const bytesTag = (field: number): number => field * 8 + 2;

export class ProtoReader {
  readonly bytes: Buffer;
  at = 0;
  /** The halves of the number that was read last. */
  #low = 0;
  #high = 0;

  constructor(bytes: Uint8Array) {
    this.bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  /** A tag, an index, or the low 32 bits of a larger number, with a sign. */
  int32(): number {
    const byte = this.bytes[this.at]!;
    if (byte < 0x80) {
      this.at++;
      return byte;
    }
    this.#varint();
    return this.#low;
  }

  /** Of 64 bits with a sign; exact up to 2^53. */
  number(): number {
    this.#varint();
    return this.#high * 2 ** 32 + (this.#low >>> 0);
  }

  /** 64 bits without a sign, as {@link low} and {@link high}. */
  halves(): void {
    this.#varint();
  }

  get low(): number {
    return this.#low >>> 0;
  }

  get high(): number {
    return this.#high >>> 0;
  }

  /** 64 bits without a sign. */
  bigint(): bigint {
    this.#varint();
    const [high, low] = [this.#high >>> 0, this.#low >>> 0];
    // below 2^53 a number holds it, and needs one BigInt instead of four
    return high < 2 ** 21 ? BigInt(high * 2 ** 32 + low) : (BigInt(high) << 32n) | BigInt(low);
  }

  fixed64(): bigint {
    return this.bytes.readBigUInt64LE(this.#step(8));
  }

  double(): number {
    return this.bytes.readDoubleLE(this.#step(8));
  }

  /** Reads a length; where what it measures ends. */
  end(): number {
    const length = this.int32() >>> 0;
    if (length > this.bytes.length - this.at) throw this.#cut();
    return this.at + length;
  }

  skip(tag: number): void {
    const wireType = tag & 7;
    if (wireType === 0) this.#varint();
    else if (wireType === 1) this.#step(8);
    else if (wireType === 2) this.at = this.end();
    else if (wireType === 5) this.#step(4);
    else throw new BadProtobuf(`wire type ${wireType} at byte ${this.at}`);
  }

  #step(size: number): number {
    const { at } = this;
    if (size > this.bytes.length - at) throw this.#cut();
    this.at = at + size;
    return at;
  }

  #varint(): void {
    const { bytes } = this;
    let { at } = this;
    let [low, high] = [0, 0];
    for (let shift = 0; shift < 70; shift += 7) {
      if (at >= bytes.length) throw this.#cut();
      const byte = bytes[at++]!;
      const bits = byte & 0x7f;
      if (shift < 32) low |= bits << shift;
      if (shift === 28) high = bits >>> 4;
      else if (shift > 28 && shift < 64) high |= bits << (shift - 32);
      if (byte < 0x80) {
        this.at = at;
        this.#low = low;
        this.#high = high;
        return;
      }
    }
    throw new BadProtobuf(`a number of more than 10 bytes at byte ${this.at}`);
  }

  #cut(): BadProtobuf {
    return new BadProtobuf(`an end in the middle of a field at byte ${this.at}`);
  }
}

/** A list of 32-bit integers that is filled again and again. */
export class IntList {
  values = new Int32Array(64);
  length = 0;

  push(value: number): void {
    if (this.length === this.values.length) {
      const larger = new Int32Array(2 * this.length);
      larger.set(this.values);
      this.values = larger;
    }
    this.values[this.length++] = value;
  }

  /** A packed list of indices. */
  pushPacked(reader: ProtoReader): void {
    const end = reader.end();
    while (reader.at < end) this.push(reader.int32());
  }

  /** A view, until the next push. */
  view(): Int32Array {
    return this.values.subarray(0, this.length);
  }
}
