/** Ruby's strings and arrays in a live process: include/ruby/internal/core/rstring.h and rarray.h. */
import type { ProcessMemory } from '../contract.ts';
import type { RubyLayout } from './layout.ts';

const MAX_ADDRESS = 2 ** 48;
const HEADER = 16;
const TYPE_MASK = 0x1f;
const T_STRING = 5;
const T_ARRAY = 7;
const T_IMEMO = 0x1a;
/** Of a string: its characters are elsewhere. Of an array: they are not. */
const FLAG_13 = 1 << 13;
const HEAP_POINTER = 24;

export class RubyObjects {
  readonly memory: ProcessMemory;
  readonly #layout: RubyLayout;

  constructor(memory: ProcessMemory, layout: RubyLayout) {
    this.memory = memory;
    this.#layout = layout;
  }

  view(address: number, length: number): DataView | undefined {
    if (!(address > 0 && address + length < MAX_ADDRESS)) return undefined;
    const bytes = this.memory.read(address, length);
    return bytes?.length === length ? new DataView(bytes.buffer, bytes.byteOffset, length) : undefined;
  }

  word(address: number): number {
    const view = this.view(address, 8);
    return view ? wordAt(view, 0) : 0;
  }

  half(address: number): number | undefined {
    return this.view(address, 4)?.getUint32(0, true);
  }

  /** Which of Ruby's own types; undefined where it can't be read. */
  flags(object: number): number | undefined {
    return object % 8 === 0 ? this.half(object) : undefined;
  }

  isImemo(object: number, kind: number): boolean {
    const flags = this.flags(object) ?? 0;
    return (flags & TYPE_MASK) === T_IMEMO && ((flags >>> 12) & 15) === kind;
  }

  /** Cut at `maxBytes`; undefined where none is there. */
  string(object: number, maxBytes: number): string | undefined {
    const flags = this.flags(object);
    if (flags === undefined || (flags & TYPE_MASK) !== T_STRING) return undefined;
    const isElsewhere = (flags & FLAG_13) !== 0;
    const { hasStringLength } = this.#layout;
    const length = hasStringLength || isElsewhere ? this.word(object + HEADER) : (flags >>> 14) & 31;
    const at = isElsewhere ? this.word(object + HEAP_POINTER) : object + (hasStringLength ? 24 : HEADER);
    const wanted = Math.min(length, maxBytes);
    if (wanted === 0) return '';
    const bytes = this.memory.read(at, wanted);
    if (bytes?.length !== wanted) return undefined;
    // no name has one, but what was freed and used again may
    const end = bytes.indexOf(0);
    if (end >= 0) return Buffer.from(bytes.subarray(0, end)).toString();
    return Buffer.from(bytes).toString() + (length > maxBytes ? '…' : '');
  }

  /** Undefined where there is no array, or it is shorter. */
  element(object: number, index: number): number | undefined {
    const flags = this.flags(object);
    if (flags === undefined || (flags & TYPE_MASK) !== T_ARRAY) return undefined;
    const isHere = (flags & FLAG_13) !== 0;
    const length = isHere ? (flags >>> 15) & 0x7f : this.word(object + HEADER);
    if (index >= length) return undefined;
    return this.word((isHere ? object + HEADER : this.word(object + 32)) + index * 8);
  }
}

export const wordAt = (view: DataView, at: number): number =>
  view.getUint32(at + 4, true) * 2 ** 32 + view.getUint32(at, true);
