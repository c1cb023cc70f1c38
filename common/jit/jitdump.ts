/**
 * jitdump, jit-PID.dump: records of the code that a JIT made, with lines where it knows them
 * (tools/perf/Documentation/jitdump-specification.txt of Linux, version 1).
 *
 * Only headers are read: where each record stands, and which of them says what. A debug-info record comes before the
 * load of the code that it is about. A move gives code of a known index another address.
 */

import { OutOfBounds } from '../base/byte-source.ts';
import { Cursor } from '../base/cursor.ts';
import type { SymbolFrame } from '../symbols/source.ts';
import { CodeMap } from './code-map.ts';
import {
  type JitCode,
  type JitCodeStats,
  type JitName,
  MAX_ADDRESS,
  noJitCodeStats,
  type ReadAt,
  readName,
} from './jit-code.ts';

const MAGIC = 0x4a695444;
const HEADER_BYTES = 40;
const PREFIX_BYTES = 16;
const MIN_BYTES: Readonly<Record<number, number>> = { 0: 56, 1: 64, 2: 32 };
const RECORD = { LOAD: 0, MOVE: 1, DEBUG_INFO: 2, CLOSE: 3 } as const;
/** Header of a load and a name. */
const LOAD_BYTES = 56 + 1024;
/** Lines of one function; past that its lines are left out. */
const MAX_DEBUG_BYTES = 256 << 10;
/** Places in the code map: the number of a load, MOVED and the number of a move, or where code was moved away. */
const MOVED = 2 ** 32;
const NOTHING = -1;
/** Each is looked up among all loads and moves. */
const MAX_MOVES = 4096;
/** A file name that stands for that of the entry before. */
const SAME_FILE = '\xff';

/** Appends numbers without a JavaScript array's overhead at its largest. */
class Column {
  #values = new Float64Array(64);
  length = 0;

  push(value: number): void {
    if (this.length === this.#values.length) {
      const larger = new Float64Array(this.length * 2);
      larger.set(this.#values);
      this.#values = larger;
    }
    this.#values[this.length++] = value;
  }

  at(i: number): number {
    return this.#values[i]!;
  }

  lastIndexOf(value: number): number {
    return this.length === 0 ? -1 : this.#values.lastIndexOf(value, this.length - 1);
  }

  get byteLength(): number {
    return this.#values.byteLength;
  }
}

export class JitDump implements JitCode {
  readonly stats: JitCodeStats;
  readonly #code: CodeMap;
  /** A row a load: where the record stands, where its debug info stands (0: none), and its code index. */
  readonly #loads = new Column();
  readonly #debug = new Column();
  readonly #indices = new Column();
  /** A row a move: what was moved, and how far it lies from where its load had put it. */
  readonly #moves: { load: number; by: number }[] = [];
  #movesLeft = MAX_MOVES;
  #pendingDebug = { at: 0, address: -1 };
  #isClosed = false;

  /** `stats`: counted on, so that several files may share them. */
  constructor(maxEntries: number, stats = noJitCodeStats()) {
    this.#code = new CodeMap(maxEntries);
    this.stats = stats;
  }

  get byteLength(): number {
    const columns = [this.#loads, this.#debug, this.#indices];
    return columns.reduce((sum, { byteLength }) => sum + byteLength, this.#code.byteLength);
  }

  push(chunk: Uint8Array, offset: number): number {
    const view = new DataView(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    let at = 0;
    if (offset === 0) {
      if (chunk.length < HEADER_BYTES) return 0;
      at = readHeader(view);
      if (at < 0) return this.#giveUp();
    }
    while (!this.#isClosed && at + PREFIX_BYTES <= chunk.length) {
      const bytes = view.getUint32(at + 4, true);
      const id = view.getUint32(at, true);
      if (bytes < (MIN_BYTES[id] ?? PREFIX_BYTES)) return this.#giveUp();
      if (at + (MIN_BYTES[id] ?? PREFIX_BYTES) > chunk.length) break;
      this.#take(id, new Cursor(chunk, at + PREFIX_BYTES), offset + at);
      at += bytes;
    }
    return this.#isClosed ? -1 : offset + at;
  }

  find(address: number): number | undefined {
    const place = this.#code.find(address);
    return place === NOTHING ? undefined : place;
  }

  async describe(place: number, address: number, read: ReadAt): Promise<JitName> {
    const { load, by } = place < MOVED ? { load: place, by: 0 } : this.#moves[place - MOVED]!;
    const bytes = await read(this.#loads.at(load), LOAD_BYTES);
    const original = address - by;
    const name = loadName(bytes, original);
    if (name === undefined) return 'replaced';
    const frame = { function: name, systemName: '', file: '', line: 0, column: 0, inlined: false };
    const debugAt = this.#debug.at(load);
    return debugAt === 0 ? frame : withLine(frame, original, debugAt, read);
  }

  #giveUp(): number {
    this.stats.malformed++;
    return -1;
  }

  #take(id: number, cursor: Cursor, at: number): void {
    if (id === RECORD.LOAD) this.#load(cursor, at);
    else if (id === RECORD.MOVE) this.#move(cursor);
    else if (id === RECORD.DEBUG_INFO) this.#pendingDebug = { at, address: cursor.u64() };
    else if (id === RECORD.CLOSE) this.#isClosed = true;
  }

  #load(cursor: Cursor, at: number): void {
    cursor.skip(16);
    const [address, size, index] = [cursor.u64(), cursor.u64(), cursor.u64()];
    const debug = this.#pendingDebug;
    this.#pendingDebug = { at: 0, address: -1 };
    if (!(size > 0 && address + size <= MAX_ADDRESS)) this.stats.malformed++;
    else if (this.#code.add(address, size, this.#loads.length)) {
      this.stats.functions++;
      this.#loads.push(at);
      this.#debug.push(debug.address === address ? debug.at : 0);
      this.#indices.push(index);
    } else this.stats.dropped++;
  }

  #move(cursor: Cursor): void {
    cursor.skip(16);
    const [from, to, size, index] = [cursor.u64(), cursor.u64(), cursor.u64(), cursor.u64()];
    if (this.#movesLeft === 0) {
      this.stats.dropped++;
      return;
    }
    this.#movesLeft--;
    const load = this.#indices.lastIndexOf(index);
    if (load < 0 || !(size > 0 && Math.max(from, to) + size <= MAX_ADDRESS)) this.stats.malformed++;
    else if (this.#code.add(from, size, NOTHING)) {
      const place = MOVED + this.#moves.length;
      const before = this.#moves.findLast((move) => move.load === load)?.by ?? 0;
      this.#moves.push({ load, by: before + to - from });
      if (!this.#code.add(to, size, place)) this.stats.dropped++;
    } else this.stats.dropped++;
  }
}

/** Size of the header, -1 where this is not a jitdump of a little-endian process. */
function readHeader(view: DataView): number {
  const [magic, version, bytes] = [view.getUint32(0, true), view.getUint32(4, true), view.getUint32(8, true)];
  return magic === MAGIC && version === 1 && bytes >= HEADER_BYTES && bytes < 4096 ? bytes : -1;
}

/** Undefined where there is another record by now. */
function loadName(bytes: Uint8Array, address: number): string | undefined {
  const cursor = new Cursor(bytes);
  try {
    if (cursor.u32() !== RECORD.LOAD) return undefined;
    cursor.skip(28);
    const [start, size] = [cursor.u64(), cursor.u64()];
    cursor.skip(8);
    if (address < start || address >= start + size) return undefined;
    const end = bytes.indexOf(0, cursor.at);
    return readName(bytes.subarray(cursor.at, end < 0 ? bytes.length : end));
  } catch (error) {
    if (error instanceof OutOfBounds) return undefined;
    throw error;
  }
}

/** The function with the line that its code at that address is of; without one where that is damaged. */
async function withLine(frame: SymbolFrame, address: number, at: number, read: ReadAt): Promise<SymbolFrame> {
  const header = new Cursor(await read(at, PREFIX_BYTES));
  try {
    if (header.u32() !== RECORD.DEBUG_INFO) return frame;
    const bytes = header.u32();
    if (bytes > MAX_DEBUG_BYTES) return frame;
    return { ...frame, ...findLine(new Cursor(await read(at, bytes)), address) };
  } catch (error) {
    if (error instanceof OutOfBounds) return frame;
    throw error;
  }
}

/** The last entry at or before the address; entries are not always sorted. */
function findLine(cursor: Cursor, address: number): { file: string; line: number } | undefined {
  cursor.skip(PREFIX_BYTES + 8);
  let best: { at: number; file: string; line: number } | undefined;
  let file = '';
  for (let left = cursor.u64(); left > 0; left--) {
    const [at, line] = [cursor.u64(), cursor.i32()];
    cursor.skip(4);
    const name = cursor.cstring();
    if (name !== SAME_FILE) file = name;
    if (at <= address && at >= (best?.at ?? 0)) best = { at, file, line: Math.max(0, line) };
  }
  return best && { file: readName(Buffer.from(best.file, 'latin1')), line: best.line };
}
