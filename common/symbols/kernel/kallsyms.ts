/**
 * Reader of /proc/kallsyms: `ADDRESS TYPE NAME[\t[MODULE]]`, one symbol a line, some 5–15 MB in all. It takes the
 * text in pieces as it is read, byte by byte: a regular expression or a split a line would cost a multiple.
 *
 * Types are nm's letters (kernel/kallsyms.c, `man nm`): t and T local and global text, w and W weak. All other
 * symbols are data, and dropped. Modules follow the kernel's own symbols in no order.
 */
import { BIND_GLOBAL, BIND_LOCAL, BIND_WEAK, NameColumn } from '../name-column.ts';

/**
 * Kernel addresses are stored as doubles relative to this one. It is below the kernel's half on every 64-bit
 * architecture, arm64 with 52-bit addresses included, and all that is above it fits 53 bits exactly.
 */
export const KERNEL_BASE = 0xfff0_0000_0000_0000n;
const KERNEL_BASE_HIGH = 0xfff0_0000;
const TWO_32 = 0x1_0000_0000;

const MAX_SYMBOLS = 4_000_000;
/** KSYM_NAME_LEN is 512 (include/linux/kallsyms.h); module names have 56 bytes at most. */
const MAX_LINE = 700;
const MAX_MODULES = 4096;

const NEWLINE = 0x0a;
const TAB = 0x09;
const SPACE = 0x20;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

/** Text symbols in the order of the file; columns of `count` entries, valid until the next push. */
export interface RawSymbols {
  count: number;
  addresses: Float64Array;
  binds: Uint8Array;
  /** Index into `modules`; 0 is the kernel itself. */
  modules: Uint16Array;
  /** Name i is `names[nameStarts[i], nameStarts[i + 1])`. */
  nameStarts: Uint32Array;
  names: NameColumn;
  moduleNames: string[];
  /** Lines that are not a symbol, or one too many. */
  skippedLines: number;
  /** Lines of symbols that show an address, and that hide it. */
  shown: number;
  hidden: number;
}

export class KallsymsReader {
  #partial = new Uint8Array(MAX_LINE);
  #partialLength = 0;
  #moduleIndex = new Map<string, number>();
  #lastModule = 0;
  #symbols: RawSymbols = {
    count: 0,
    addresses: new Float64Array(1 << 12),
    binds: new Uint8Array(1 << 12),
    modules: new Uint16Array(1 << 12),
    nameStarts: new Uint32Array((1 << 12) + 1),
    names: new NameColumn(1 << 16),
    moduleNames: [''],
    skippedLines: 0,
    shown: 0,
    hidden: 0,
  };

  /** Takes the next piece of the file; lines may be cut anywhere. */
  push(chunk: Uint8Array): void {
    let at = 0;
    if (this.#partialLength > 0) {
      const end = chunk.indexOf(NEWLINE);
      this.#keepPartial(chunk, 0, end < 0 ? chunk.length : end);
      if (end < 0) return;
      this.#readPartial();
      at = end + 1;
    }
    for (;;) {
      const end = chunk.indexOf(NEWLINE, at);
      if (end < 0) break;
      this.#readLine(chunk, at, end);
      at = end + 1;
    }
    this.#keepPartial(chunk, at, chunk.length);
  }

  /** What was read; the last line needs no newline. */
  finish(): RawSymbols {
    if (this.#partialLength > 0) this.#readPartial();
    return this.#symbols;
  }

  #keepPartial(chunk: Uint8Array, start: number, end: number): void {
    // A line that is too long keeps its length and loses its bytes: it is skipped when it ends.
    const room = MAX_LINE - this.#partialLength;
    if (end - start <= room) this.#partial.set(chunk.subarray(start, end), this.#partialLength);
    this.#partialLength = Math.min(this.#partialLength + end - start, MAX_LINE + 1);
  }

  #readPartial(): void {
    if (this.#partialLength <= MAX_LINE) this.#readLine(this.#partial, 0, this.#partialLength);
    else this.#symbols.skippedLines++;
    this.#partialLength = 0;
  }

  #readLine(line: Uint8Array, start: number, end: number): void {
    if (start === end) return;
    const symbols = this.#symbols;
    const space = findByte(line, SPACE, start, Math.min(end, start + 17));
    const nameStart = space + 3;
    if (
      space < 0 ||
      space === start ||
      nameStart >= end ||
      end - start > MAX_LINE ||
      line[space + 2] !== SPACE
    ) {
      symbols.skippedLines++;
      return;
    }
    const high = readHex(line, Math.max(start, space - 16), Math.max(start, space - 8));
    const low = readHex(line, Math.max(start, space - 8), space);
    if (high < 0 || low < 0) {
      symbols.skippedLines++;
      return;
    }
    if (high === 0 && low === 0) symbols.hidden++;
    else symbols.shown++;
    const bind = textBind(line[space + 1]!);
    if (bind < 0 || high < KERNEL_BASE_HIGH) return;
    const tab = findByte(line, TAB, nameStart, end);
    const module = tab < 0 ? 0 : this.#findModule(line, tab + 1, end);
    const nameEnd = tab < 0 ? end : tab;
    if (module < 0 || nameEnd === nameStart || symbols.count >= MAX_SYMBOLS) {
      symbols.skippedLines++;
      return;
    }
    this.#add((high - KERNEL_BASE_HIGH) * TWO_32 + low, bind, module, line, nameStart, nameEnd);
  }

  #add(address: number, bind: number, module: number, line: Uint8Array, start: number, end: number): void {
    const symbols = this.#symbols;
    if (symbols.count === symbols.addresses.length) this.#grow(symbols.count * 2);
    const i = symbols.count++;
    symbols.addresses[i] = address;
    symbols.binds[i] = bind;
    symbols.modules[i] = module;
    symbols.names.append(line, start, end);
    symbols.nameStarts[i + 1] = symbols.names.length;
  }

  #grow(capacity: number): void {
    const symbols = this.#symbols;
    const grown = <T extends { set(source: T): void }>(to: T, from: T): T => {
      to.set(from);
      return to;
    };
    symbols.addresses = grown(new Float64Array(capacity), symbols.addresses);
    symbols.binds = grown(new Uint8Array(capacity), symbols.binds);
    symbols.modules = grown(new Uint16Array(capacity), symbols.modules);
    symbols.nameStarts = grown(new Uint32Array(capacity + 1), symbols.nameStarts);
  }

  /** Index of `[name]`, -1 where it is not a module. Symbols of a module follow each other, so the last is tried. */
  #findModule(line: Uint8Array, start: number, end: number): number {
    if (end - start < 3 || line[start] !== OPEN_BRACKET || line[end - 1] !== CLOSE_BRACKET) return -1;
    const { moduleNames } = this.#symbols;
    const last = moduleNames[this.#lastModule]!;
    if (equalsAscii(last, line, start + 1, end - 1)) return this.#lastModule;
    const name = String.fromCharCode(...line.subarray(start + 1, end - 1));
    let index = this.#moduleIndex.get(name);
    if (index === undefined) {
      if (moduleNames.length >= MAX_MODULES) return -1;
      index = moduleNames.push(name) - 1;
      this.#moduleIndex.set(name, index);
    }
    this.#lastModule = index;
    return index;
  }
}

function findByte(bytes: Uint8Array, value: number, start: number, end: number): number {
  for (let i = start; i < end; i++) if (bytes[i] === value) return i;
  return -1;
}

function equalsAscii(text: string, bytes: Uint8Array, start: number, end: number): boolean {
  if (text.length !== end - start) return false;
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) !== bytes[start + i]) return false;
  return true;
}

/** Value of at most 8 hex digits, 0 for none, -1 where a byte is not a digit. */
function readHex(bytes: Uint8Array, start: number, end: number): number {
  let value = 0;
  for (let i = start; i < end; i++) {
    const c = bytes[i]!;
    let digit: number;
    if (c >= 0x30 && c <= 0x39) digit = c - 0x30;
    else if (c >= 0x61 && c <= 0x66) digit = c - 0x57;
    else if (c >= 0x41 && c <= 0x46) digit = c - 0x37;
    else return -1;
    value = value * 16 + digit;
  }
  return value;
}

function textBind(type: number): number {
  switch (type) {
    case 0x74: // t
      return BIND_LOCAL;
    case 0x54: // T
      return BIND_GLOBAL;
    case 0x77: // w
    case 0x57: // W
      return BIND_WEAK;
    default:
      return -1;
  }
}
