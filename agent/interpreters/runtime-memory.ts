/** Memory of a process that runs on while it is read: what is not there ends the reading, with a reason. */
import type { NameFailure, ProcessMemory } from './contract.ts';

/** Thrown inside a plug-in, which returns the reason. */
export class CannotRead extends Error {
  override readonly name = 'CannotRead';
  readonly reason: NameFailure;

  constructor(reason: NameFailure) {
    super(reason);
    this.reason = reason;
  }
}

/** Where arm64's user space ends, which is larger than x86-64's. */
const MAX_ADDRESS = 2 ** 48;
const PAGE = 4096;
const NOTHING = new Uint8Array(0);

/** False of NaN, too. */
const isPlace = (address: number, length: number): boolean => address > 0 && address + length < MAX_ADDRESS;

export class RuntimeMemory {
  readonly #memory: ProcessMemory;

  constructor(memory: ProcessMemory) {
    this.#memory = memory;
  }

  /** Up to `length` bytes, at least one; valid until the next turn of the event loop. */
  upTo(address: number, length: number): Uint8Array {
    if (!isPlace(address, length)) throw new CannotRead('malformed');
    const part = this.#part(address, length);
    if (!part) throw new CannotRead('unreadable');
    return part;
  }

  /** As {@link upTo}; none where nothing can be read. */
  part(address: number, length: number): Uint8Array {
    return (isPlace(address, length) && this.#part(address, length)) || NOTHING;
  }

  #part(address: number, length: number): Uint8Array | undefined {
    const whole = this.#memory.read(address, length);
    if (whole && whole.length > 0) return whole;
    // the page behind is not mapped
    const left = PAGE - (address % PAGE);
    const first = left < length ? this.#memory.read(address, left) : undefined;
    return first && first.length > 0 ? first : undefined;
  }

  /** Undefined where a part can't be read. */
  whole(address: number, length: number): Uint8Array | undefined {
    const bytes = isPlace(address, length) ? this.#memory.read(address, length) : undefined;
    return bytes?.length === length ? bytes : undefined;
  }

  bytes(address: number, length: number): Uint8Array {
    const bytes = this.upTo(address, length);
    if (bytes.length < length) throw new CannotRead('unreadable');
    return bytes;
  }

  view(address: number, length: number): DataView {
    const bytes = this.bytes(address, length);
    return new DataView(bytes.buffer, bytes.byteOffset, length);
  }

  u8(address: number): number {
    return this.view(address, 1).getUint8(0);
  }

  u16(address: number): number {
    return this.view(address, 2).getUint16(0, true);
  }

  i32(address: number): number {
    return this.view(address, 4).getInt32(0, true);
  }

  u32(address: number): number {
    return this.view(address, 4).getUint32(0, true);
  }

  /** A word; what is not an address is larger than any. */
  word(address: number): number {
    return wordAt(this.view(address, 8), 0);
  }

  /** A text in UTF-16 that ends in NUL, cut at `maxBytes`. */
  wideText(address: number, maxBytes: number): string {
    const bytes = this.upTo(address, maxBytes);
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf16le');
    const end = text.indexOf('\0');
    return end < 0 ? text : text.slice(0, end);
  }

  /** A text in UTF-8 that ends in NUL, cut at `maxBytes`. */
  text(address: number, maxBytes: number): string {
    const bytes = this.upTo(address, maxBytes);
    const end = bytes.indexOf(0);
    return Buffer.from(bytes.buffer, bytes.byteOffset, end < 0 ? bytes.length : end).toString('utf8');
  }
}

export const wordAt = (view: DataView, at: number): number =>
  view.getUint32(at + 4, true) * 2 ** 32 + view.getUint32(at, true);
