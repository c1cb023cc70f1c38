/**
 * Bytes of one debug section, which may have a gigabyte: read in windows, of which a few are kept. Sections that
 * are compressed cannot be read in parts and are kept whole.
 */
import { Cursor } from '../../base/cursor.ts';
import { type ByteSource, OutOfBounds } from '../../elf/source.ts';

const WINDOW_BYTES = 16 << 10;
const MAX_WINDOWS = 24;
const MAX_STRING_BYTES = 64 << 10;

export class SectionBytes {
  readonly size: number;
  readonly #source: ByteSource;
  readonly #offset: number;
  /** It is held in memory whole, with so many bytes. */
  readonly #resident: number;
  readonly #windows = new Map<number, Uint8Array>();
  /** Of {@link parseNear}. */
  #near: { first: number; cursor: Cursor } | undefined;

  readonly #maxWindows: number;

  /** `size` bytes at `offset` of a source; `resident` says that the source is memory and not a file. */
  constructor(source: ByteSource, offset: number, size: number, resident: boolean, maxWindows = MAX_WINDOWS) {
    this.#maxWindows = maxWindows;
    this.#source = source;
    this.#offset = offset;
    this.size = size;
    this.#resident = resident ? size : 0;
  }

  get byteLength(): number {
    return this.#resident || this.#windows.size * WINDOW_BYTES;
  }

  /** Exactly `length` bytes at `at`; throws OutOfBounds. They are shared: read only. */
  bytes(at: number, length: number): Uint8Array {
    if (!(at >= 0 && length >= 0 && at + length <= this.size))
      throw new OutOfBounds(`${length} bytes at ${at} of ${this.size}`);
    const first = at - (at % WINDOW_BYTES);
    if (this.#resident > 0 || at + length > first + WINDOW_BYTES)
      return this.#source.read(this.#offset + at, length);
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
    let length = Math.min(end - at, WINDOW_BYTES - (at % WINDOW_BYTES));
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
   * a window. `read` may be called twice, and must not come back here.
   */
  parseNear<T>(at: number, read: (cursor: Cursor) => T): T {
    const first = at - (at % WINDOW_BYTES);
    if (this.#near?.first !== first) {
      const bytes = this.bytes(first, Math.min(WINDOW_BYTES, this.size - first));
      this.#near = { first, cursor: new Cursor(bytes) };
    }
    const { cursor } = this.#near;
    cursor.at = at - first;
    try {
      return read(cursor);
    } catch (error) {
      if (!(error instanceof OutOfBounds)) throw error;
      return this.parse(at, this.size, read);
    }
  }

  /** The NUL-terminated string at `at`; a longer one than 64 KiB is cut. */
  string(at: number): string {
    for (let length = 256; ; length *= 16) {
      const bytes = this.bytes(at, Math.max(0, Math.min(length, this.size - at)));
      const end = bytes.indexOf(0);
      if (end >= 0 || length >= MAX_STRING_BYTES || bytes.length < length) {
        const text = bytes.subarray(0, end < 0 ? bytes.length : end);
        return Buffer.from(text.buffer, text.byteOffset, text.byteLength).toString('utf8');
      }
    }
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
