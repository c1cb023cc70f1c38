/** Writes protobuf fields straight into a growing buffer: no tree of objects, no sizes computed in advance. */

/** Up to here bit operations hold. */
const MAX_INT32 = 0x7fff_ffff;
const MAX_SAFE = BigInt(Number.MAX_SAFE_INTEGER);
/** Up to here a loop is faster than a view of the bytes. */
const FEW_BYTES = 96;
/** Of at most three bytes each, so that they take less than 128. */
const FEW_CHARACTERS = 42;

/** Of one number of 64 bits: low, high. */
const half = new Uint32Array(2);
const whole = new BigUint64Array(half.buffer);

export class ProtoWriter {
  #bytes: Buffer;
  #view: DataView;
  #at = 0;

  constructor(capacity = 1024) {
    this.#bytes = Buffer.alloc(capacity);
    this.#view = new DataView(this.#bytes.buffer, this.#bytes.byteOffset);
  }

  get length(): number {
    return this.#at;
  }

  /** A view of what was written; valid until the next write. */
  finish(): Uint8Array {
    return this.#bytes.subarray(0, this.#at);
  }

  clear(): void {
    this.#at = 0;
  }

  /** Whether what `other` wrote stands here from `start` to `end`. */
  holds(other: ProtoWriter, start: number, end: number): boolean {
    if (end - start !== other.#at) return false;
    for (let i = 0; i < other.#at; i++) if (this.#bytes[start + i] !== other.#bytes[i]) return false;
    return true;
  }

  /** FNV-1a of what was written, 32 bits with a sign. */
  hash(): number {
    let hash = this.#at;
    for (let i = 0; i < this.#at; i++) hash = Math.imul(hash ^ this.#bytes[i]!, 0x0100_0193);
    return hash;
  }

  /** A number field; 0, the default, is left out. */
  uint(field: number, value: number | bigint): void {
    if (value === 0 || value === 0n) return;
    this.#varint(field * 8);
    if (typeof value === 'number') this.#varint(value);
    // plain numbers are several times as fast, and nearly all fit
    else if (value > 0n && value <= MAX_SAFE) this.#varint(Number(value));
    else this.#bigVarint(BigInt.asUintN(64, value));
  }

  fixed64(field: number, value: bigint): void {
    if (value === 0n) return;
    this.#varint(field * 8 + 1);
    this.#fixed64(value);
  }

  /** A string field; also the empty one is written, as an entry of a table needs it. */
  string(field: number, value: string): void {
    this.#varint(field * 8 + 2);
    if (value.length <= FEW_CHARACTERS) {
      // its length takes one byte whatever it is: no need to ask for it first
      this.#reserve(128);
      const length = this.#bytes.write(value, this.#at + 1, 'utf8');
      this.#bytes[this.#at] = length;
      this.#at += length + 1;
      return;
    }
    const length = Buffer.byteLength(value);
    this.#varint(length);
    this.#reserve(length);
    this.#bytes.write(value, this.#at, length, 'utf8');
    this.#at += length;
  }

  bytes(field: number, value: Uint8Array): void {
    this.#varint(field * 8 + 2);
    this.#varint(value.length);
    this.raw(value);
  }

  /** Bytes that are fields already. */
  raw(value: Uint8Array): void {
    this.#reserve(value.length);
    this.#bytes.set(value, this.#at);
    this.#at += value.length;
  }

  message(field: number, inner: ProtoWriter): void {
    this.#varint(field * 8 + 2);
    this.#varint(inner.length);
    this.copy(inner, 0, inner.length);
  }

  /** What `other` wrote from `start` to `end`: fields already. */
  copy(other: ProtoWriter, start: number, end: number): void {
    if (end - start > FEW_BYTES) {
      this.raw(other.#bytes.subarray(start, end));
      return;
    }
    this.#reserve(end - start);
    for (let i = start; i < end; i++) this.#bytes[this.#at++] = other.#bytes[i]!;
  }

  /** The first `count` of the values. */
  packedUint(field: number, values: ArrayLike<number>, count = values.length): void {
    if (count === 0) return;
    let size = 0;
    for (let i = 0; i < count; i++) size += varintSize(values[i]!);
    this.#varint(field * 8 + 2);
    this.#varint(size);
    for (let i = 0; i < count; i++) this.#varint(values[i]!);
  }

  packedFixed64(field: number, values: readonly bigint[]): void {
    if (values.length === 0) return;
    this.#varint(field * 8 + 2);
    this.#varint(values.length * 8);
    for (let i = 0; i < values.length; i++) this.#fixed64(values[i]!);
  }

  #reserve(n: number): void {
    if (this.#at + n <= this.#bytes.length) return;
    const larger = Buffer.alloc(Math.max(this.#bytes.length * 2, this.#at + n));
    larger.set(this.#bytes);
    this.#bytes = larger;
    this.#view = new DataView(larger.buffer, larger.byteOffset);
  }

  /** Up to 2^53; negative numbers take ten bytes, as protobuf's int64 does. */
  #varint(value: number): void {
    if (value < 0) {
      this.#bigVarint(BigInt.asUintN(64, BigInt(value)));
      return;
    }
    this.#reserve(10);
    let rest = value;
    while (rest > MAX_INT32) {
      this.#bytes[this.#at++] = (rest % 0x80) + 0x80;
      rest = Math.floor(rest / 0x80);
    }
    while (rest >= 0x80) {
      this.#bytes[this.#at++] = rest | 0x80;
      rest >>= 7;
    }
    this.#bytes[this.#at++] = rest;
  }

  #bigVarint(value: bigint): void {
    this.#reserve(10);
    // by halves: each step on the whole would make a BigInt
    whole[0] = value;
    let low = half[0]!;
    let high = half[1]!;
    while (high > 0 || low >= 0x80) {
      this.#bytes[this.#at++] = low | 0x80;
      low = ((low >>> 7) | (high << 25)) >>> 0;
      high >>>= 7;
    }
    this.#bytes[this.#at++] = low;
  }

  #fixed64(value: bigint): void {
    this.#reserve(8);
    this.#view.setBigUint64(this.#at, value, true);
    this.#at += 8;
  }
}

function varintSize(value: number): number {
  if (value < 0) return 10;
  let size = 1;
  let rest = value;
  for (; rest > MAX_INT32; rest = Math.floor(rest / 0x80)) size++;
  for (; rest >= 0x80; rest >>= 7) size++;
  return size;
}
