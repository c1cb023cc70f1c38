/**
 * Bytes of one debug section, which may have a gigabyte: read in windows, of which a few are kept. Sections that
 * are compressed cannot be read in parts and are kept whole.
 */

import { type ByteSource, OutOfBounds } from '../base/byte-source.ts';
import { Cursor } from '../base/cursor.ts';

const WINDOW_BYTES = 16 << 10;
const MAX_WINDOWS = 24;
/** Of a section of strings, where memory is not short. */
export const MANY_WINDOWS = 192;
const MAX_CREDIT = 512;
/** Most items end before: to try in vain what is left of a window costs more than to read on. */
const MIN_PARSED_BYTES = 1024;
const MAX_STRING_BYTES = 64 << 10;
/** Where a name is read beside the others; most have fewer bytes. */
const FIRST_STRING_BYTES = 256;
/** Of what was read at once, such as a unit, and stays for what refers into it. */
const MAX_HELD_BYTES = 8 << 20;

export class SectionBytes {
  readonly size: number;
  readonly #source: ByteSource;
  readonly #offset: number;
  /** It is held in memory whole, with so many bytes. */
  readonly #resident: number;
  readonly #windows = new Map<number, Uint8Array>();
  /** Of {@link parseNear}. */
  #near: { first: number; cursor: Cursor } | undefined;

  /** The last piece that is larger than a window, where such pieces are held. */
  #held: { at: number; bytes: Uint8Array } | undefined;
  readonly #maxWindows: number;
  readonly #maxHeld: number;
  /** The window that the last string stood in, while it is not kept. */
  #missed = -1;
  /** Windows that may still be read for one string, since that paid before; in large sections it has to show first. */
  #credit: number;

  /**
   * `size` bytes at `offset` of a source; `resident` says that the source is memory and not a file, `holdsLast` that the
   * last large piece stays in memory, which saves reading its parts again.
   */
  constructor(
    source: ByteSource,
    offset: number,
    size: number,
    resident: boolean,
    { maxWindows = MAX_WINDOWS, holdsLast = false } = {},
  ) {
    this.#maxWindows = maxWindows;
    this.#maxHeld = holdsLast ? MAX_HELD_BYTES : 0;
    this.#source = source;
    this.#offset = offset;
    this.size = size;
    this.#credit = maxWindows - MAX_WINDOWS;
    this.#resident = resident ? size : 0;
  }

  get byteLength(): number {
    return this.#resident || this.#windows.size * WINDOW_BYTES + (this.#held?.bytes.length ?? 0);
  }

  /** Exactly `length` bytes at `at`; throws OutOfBounds. They are shared: read only. */
  bytes(at: number, length: number): Uint8Array {
    if (!(at >= 0 && length >= 0 && at + length <= this.size))
      throw new OutOfBounds(`${length} bytes at ${at} of ${this.size}`);
    if (this.#resident > 0) return this.#source.read(this.#offset + at, length);
    const held = this.#held;
    if (held && at >= held.at && at + length <= held.at + held.bytes.length)
      return held.bytes.subarray(at - held.at, at - held.at + length);
    const first = at - (at % WINDOW_BYTES);
    if (at + length > first + WINDOW_BYTES) {
      const bytes = this.#source.read(this.#offset + at, length);
      if (length <= this.#maxHeld) {
        this.#held = { at, bytes };
        this.#near = undefined;
      }
      return bytes;
    }
    const window = this.#window(first);
    return window.subarray(at - first, at - first + length);
  }

  /**
   * Calls `read` with a cursor at `at`, over as many bytes as stand in one window, and with more of them where
   * that was too short; `limit` is where the item ends at the latest.
   */
  parse<T>(at: number, limit: number, read: (cursor: Cursor) => T): T {
    const end = Math.min(limit, this.size);
    if (!(at >= 0 && at <= end)) throw new OutOfBounds(`offset ${at} of ${end}`);
    const near = Math.max(WINDOW_BYTES - (at % WINDOW_BYTES), this.#heldBehind(at), MIN_PARSED_BYTES);
    let length = Math.min(end - at, near);
    for (;;) {
      try {
        return read(new Cursor(this.bytes(at, length)));
      } catch (error) {
        if (!(error instanceof OutOfBounds) || at + length >= end) throw error;
        length = Math.min(end - at, Math.max(length * 8, 4096));
      }
    }
  }

  /**
   * As {@link parse}, for short items that mostly stand one behind the other: they have one cursor, which goes over
   * the piece that is held, or over a window. `read` may be called twice, and must not come back here.
   */
  parseNear<T>(at: number, limit: number, read: (cursor: Cursor) => T): T {
    const { first, cursor } = this.#cursorNear(at);
    cursor.at = at - first;
    cursor.end = Math.min(cursor.bytes.length, limit - first);
    try {
      return read(cursor);
    } catch (error) {
      if (!(error instanceof OutOfBounds)) throw error;
      return this.parse(at, limit, read);
    }
  }

  #cursorNear(at: number): { first: number; cursor: Cursor } {
    const near = this.#near;
    if (near && at >= near.first && at < near.first + near.cursor.bytes.length) return near;
    const held = this.#heldBehind(at) > 0 ? this.#held : undefined;
    const first = held?.at ?? at - (at % WINDOW_BYTES);
    const bytes = held?.bytes ?? this.bytes(first, Math.min(WINDOW_BYTES, this.size - first));
    this.#near = { first, cursor: new Cursor(bytes) };
    return this.#near;
  }

  /** The NUL-terminated string at `at`; a longer one than 64 KiB is cut. */
  string(at: number): string {
    for (let length = FIRST_STRING_BYTES; ; length *= 16) {
      const bytes = this.#bytesOfString(at, Math.max(0, Math.min(length, this.size - at)));
      const end = bytes.indexOf(0);
      if (end >= 0 || length >= MAX_STRING_BYTES || bytes.length < length) {
        const text = bytes.subarray(0, end < 0 ? bytes.length : end);
        return Buffer.from(text.buffer, text.byteOffset, text.byteLength).toString('utf8');
      }
    }
  }

  /**
   * Some linkers leave the strings of a unit together, others scatter them over hundreds of megabytes: windows are read
   * for as long as others come back to them, and then for two strings in a row alone.
   */
  #bytesOfString(at: number, length: number): Uint8Array {
    const first = at - (at % WINDOW_BYTES);
    if (this.#resident > 0 || !(at >= 0 && at + length <= this.size)) return this.bytes(at, length);
    if (this.#windows.has(first)) this.#credit = Math.min(MAX_CREDIT, this.#credit + 1);
    else if (first !== this.#missed && --this.#credit < 0) {
      this.#credit = 0;
      this.#missed = first;
      return this.#source.read(this.#offset + at, length);
    }
    return this.bytes(at, length);
  }

  /** Bytes of the piece that is held, from `at` on. */
  #heldBehind(at: number): number {
    const held = this.#held;
    return held && at >= held.at ? held.at + held.bytes.length - at : 0;
  }

  uint(at: number, size: number): number {
    const bytes = this.bytes(at, size);
    let value = 0;
    for (let i = size - 1; i >= 0; i--) value = value * 256 + bytes[i]!;
    return value;
  }

  #window(first: number): Uint8Array {
    let window = this.#windows.get(first);
    if (window) {
      // the least recently used one stands first
      if (this.#windows.size === this.#maxWindows) {
        this.#windows.delete(first);
        this.#windows.set(first, window);
      }
      return window;
    }
    window = this.#source.read(this.#offset + first, Math.min(WINDOW_BYTES, this.size - first));
    if (this.#windows.size >= this.#maxWindows) this.#windows.delete(this.#windows.keys().next().value!);
    this.#windows.set(first, window);
    return window;
  }
}
