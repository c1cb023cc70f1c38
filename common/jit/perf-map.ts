/**
 * Perf maps, /tmp/perf-PID.map: a line `START SIZE name` for each function, both in hex
 * (tools/perf/Documentation/jit-interface.txt of Linux). Some writers put 0x before the numbers.
 */
import { CodeMap } from './code-map.ts';
import {
  CHUNK_BYTES,
  type JitCode,
  type JitCodeStats,
  type JitName,
  MAX_ADDRESS,
  noJitCodeStats,
  type ReadAt,
  readName,
} from './jit-code.ts';

const NEWLINE = 10;
const SPACE = 32;
/** Two numbers of 18 characters and a name; a longer name is cut. */
const LINE_BYTES = 1024;
const MAX_NUMBER_LENGTH = 18;

interface Line {
  start: number;
  size: number;
  /** Where in the bytes the name begins. */
  nameAt: number;
}

export class PerfMap implements JitCode {
  readonly stats: JitCodeStats;
  readonly #code: CodeMap;
  /** The rest of a line that was longer than a chunk. */
  #isSkipping = false;

  /** `stats`: counted on, so that several files may share them. */
  constructor(maxEntries: number, stats = noJitCodeStats()) {
    this.#code = new CodeMap(maxEntries);
    this.stats = stats;
  }

  get byteLength(): number {
    return this.#code.byteLength;
  }

  push(chunk: Uint8Array, offset: number): number {
    let at = 0;
    for (;;) {
      const end = chunk.indexOf(NEWLINE, at);
      if (end < 0) break;
      if (this.#isSkipping) this.#isSkipping = false;
      else this.#take(chunk, at, end, offset);
      at = end + 1;
    }
    if (at === 0 && chunk.length >= CHUNK_BYTES) {
      if (!this.#isSkipping) this.#take(chunk, 0, chunk.length, offset);
      this.#isSkipping = true;
      return offset + chunk.length;
    }
    return offset + at;
  }

  find(address: number): number | undefined {
    return this.#code.find(address);
  }

  async describe(place: number, address: number, read: ReadAt): Promise<JitName> {
    const bytes = await read(place, LINE_BYTES);
    const end = bytes.indexOf(NEWLINE);
    const line = parseLine(bytes, 0, end < 0 ? bytes.length : end);
    if (!line || address < line.start || address >= line.start + line.size) return 'replaced';
    const name = readName(bytes.subarray(line.nameAt, end < 0 ? bytes.length : end));
    return { function: name, systemName: '', file: '', line: 0, column: 0, inlined: false };
  }

  #take(chunk: Uint8Array, at: number, end: number, offset: number): void {
    const line = parseLine(chunk, at, end);
    if (!line) this.stats.malformed++;
    else if (this.#code.add(line.start, line.size, offset + at)) this.stats.functions++;
    else this.stats.dropped++;
  }
}

/** Undefined where it is not a line of a perf map, or names nothing. */
function parseLine(bytes: Uint8Array, at: number, end: number): Line | undefined {
  const afterStart = findSpace(bytes, at, end);
  const afterSize = afterStart < 0 ? -1 : findSpace(bytes, afterStart + 1, end);
  if (afterSize < 0 || afterSize + 1 >= end) return undefined;
  const start = parseHex(bytes, at, afterStart);
  const size = parseHex(bytes, afterStart + 1, afterSize);
  if (!(size > 0 && start + size <= MAX_ADDRESS)) return undefined;
  return { start, size, nameAt: afterSize + 1 };
}

/** The space behind a number, -1 where there is none. Not beyond: the rest of the bytes may be lines without any. */
function findSpace(bytes: Uint8Array, from: number, end: number): number {
  const last = Math.min(end, from + MAX_NUMBER_LENGTH + 3);
  for (let at = from; at < last; at++) if (bytes[at] === SPACE) return at;
  return -1;
}

/** NaN where it is not a number. */
function parseHex(bytes: Uint8Array, from: number, end: number): number {
  let at = from;
  if (bytes[at] === 0x30 && (bytes[at + 1]! | 0x20) === 0x78) at += 2;
  if (at >= end || end - at > MAX_NUMBER_LENGTH) return Number.NaN;
  let value = 0;
  for (; at < end; at++) {
    const digit = hexDigit(bytes[at]!);
    if (digit < 0) return Number.NaN;
    value = value * 16 + digit;
  }
  return value;
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = (byte | 0x20) - 0x61;
  return letter >= 0 && letter < 6 ? letter + 10 : -1;
}
