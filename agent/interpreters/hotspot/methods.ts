/**
 * Java methods out of a live JVM. A Method leads to its ConstMethod, in which are its bytecodes, the compressed table of
 * their lines behind them, and the index of its name in the constant pool of its class.
 */
import type { RuntimeFrame } from '../contract.ts';
import { cookieOf32Bits } from '../cookie.ts';
import { CannotRead, type RuntimeMemory } from '../runtime-memory.ts';
import type { MethodLayout } from './layout.ts';
import { Unsigned5 } from './unsigned5.ts';

/**
 * What tells a method from another one that stands at its address once its class is unloaded: address of its ConstMethod, its sizes,
 * address of its class's name, and the random number that the name has.
 */
export type MethodIdentity = readonly [constMethod: bigint, sizes: bigint, symbol: bigint, random: bigint];

export interface JavaMethod {
  identity: MethodIdentity;
  /** `java.util.HashMap.put` */
  name: string;
  /** `HashMap.java`; '' where the class does not say. */
  file: string;
  lines: LineTable;
}

/** Sorted by bytecode index. */
export interface LineTable {
  indices: Uint16Array;
  lines: Uint16Array;
}

const MAX_NAME_BYTES = 1024;
const HAS_LINES = 1;
const MAX_BYTECODES = 65_535;
/** A method of the most bytecodes there may be, with a line each. */
const MAX_LINE_BYTES = 512 << 10;
const CHUNK_BYTES = 256;
const NO_LINES: LineTable = { indices: new Uint16Array(0), lines: new Uint16Array(0) };

/** As ebpf/hotspot/blobs.h reads it. Throws CannotRead. */
export function readIdentity(memory: RuntimeMemory, layout: MethodLayout, address: number): MethodIdentity {
  const constMethod = memory.word(address + layout.constMethod);
  const holder = memory.word(memory.word(constMethod + layout.constants) + layout.poolHolder);
  const symbol = memory.word(holder + layout.className);
  const head = memory.view(symbol, 8).getBigUint64(0, true);
  const sizes = memory.u32(constMethod + layout.codeSize);
  return [BigInt(constMethod), BigInt(sizes), BigInt(symbol), head >> BigInt(layout.symbolShift)];
}

/** Is that what the unwinder has made of it? The class's name may be in no page that the process itself has come to. */
export const isCookieOf = (identity: MethodIdentity, cookie: number): boolean =>
  [4, 3, 2].some((known) => cookieOf32Bits(identity.map((word, i) => (i < known ? word : 0n))) === cookie);

/** Throws CannotRead. */
export function readMethod(
  memory: RuntimeMemory,
  layout: MethodLayout,
  { address, identity, major }: { address: number; identity: MethodIdentity; major: number },
): JavaMethod {
  const constMethod = memory.word(address + layout.constMethod);
  const pool = memory.word(constMethod + layout.constants);
  const holder = memory.word(pool + layout.poolHolder);
  const name = nameInPool(memory, layout, pool, memory.u16(constMethod + layout.nameIndex));
  const className = readSymbol(memory, layout, memory.word(holder + layout.className));
  const { at, isInClass } = layout.sourceFile;
  const fileIndex = memory.u16((isInClass ? holder : pool) + at);
  return {
    identity,
    name: `${toClassName(className)}.${name}`,
    file: fileIndex === 0 ? '' : nameInPool(memory, layout, pool, fileIndex),
    lines: readLineTable(memory, layout, constMethod, major),
  };
}

/** Classes that the JVM makes for lambdas end in where they are, which is another place in each run. */
const toClassName = (name: string): string => name.replaceAll('/', '.').replace(/[.+]0x[0-9a-f]{16}$/, '');

/** The low bit of an entry is a mark. */
function nameInPool(memory: RuntimeMemory, layout: MethodLayout, pool: number, index: number): string {
  const symbol = memory.word(pool + layout.poolBytes + index * 8);
  return readSymbol(memory, layout, symbol - (symbol % 2));
}

function readSymbol(memory: RuntimeMemory, layout: MethodLayout, symbol: number): string {
  const length = memory.u16(symbol + layout.symbolLength);
  if (length === 0) throw new CannotRead('malformed');
  const bytes = Math.min(length, MAX_NAME_BYTES);
  const { buffer, byteOffset } = memory.view(symbol + layout.symbolBody, bytes);
  return Buffer.from(buffer, byteOffset, bytes).toString('utf8') + (length > bytes ? '…' : '');
}

function readLineTable(
  memory: RuntimeMemory,
  layout: MethodLayout,
  constMethod: number,
  major: number,
): LineTable {
  if ((memory.u8(constMethod + layout.flags) & HAS_LINES) === 0) return NO_LINES;
  const start = constMethod + layout.constBytes + memory.u16(constMethod + layout.codeSize);
  // how long it is nowhere is said
  for (let length = CHUNK_BYTES; length <= MAX_LINE_BYTES; length *= 8) {
    const bytes = memory.upTo(start, length);
    const table = decodeLines(bytes, major);
    if (table) return table;
    if (bytes.length < length) break;
  }
  throw new CannotRead('malformed');
}

/**
 * Pairs of differences: a byte with five bits of the index and three of the line, or 0xff and two numbers. 0 is the end.
 * Undefined where the bytes end before it.
 */
export function decodeLines(bytes: Uint8Array, major: number): LineTable | undefined {
  const numbers = new Unsigned5(bytes, 0, major);
  const indices: number[] = [];
  const lines: number[] = [];
  let [index, line] = [0, 0];
  try {
    for (let byte = numbers.byte(); byte !== 0; byte = numbers.byte()) {
      if (byte === 0xff) {
        index += numbers.signed();
        line += numbers.signed();
      } else {
        index += byte >> 3;
        line += byte & 7;
      }
      if (index < 0 || index > MAX_BYTECODES || line < 0 || line > 65_535) throw new CannotRead('malformed');
      indices.push(index);
      lines.push(line);
    }
  } catch (error) {
    if (error instanceof CannotRead && numbers.at > bytes.length) return undefined;
    throw error;
  }
  return sorted(indices, lines);
}

/** javac writes them in order; other compilers need not. */
function sorted(indices: number[], lines: number[]): LineTable {
  const isSorted = indices.every((index, i) => i === 0 || index >= indices[i - 1]!);
  const order = isSorted ? undefined : indices.map((_, i) => i).sort((a, b) => indices[a]! - indices[b]!);
  return {
    indices: Uint16Array.from(order?.map((i) => indices[i]!) ?? indices),
    lines: Uint16Array.from(order?.map((i) => lines[i]!) ?? lines),
  };
}

/** 0 where nothing is known of it. */
export function lineAt({ indices, lines }: LineTable, index: number): number {
  let [low, high] = [0, indices.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (indices[middle]! <= index) low = middle + 1;
    else high = middle;
  }
  return low === 0 ? 0 : lines[low - 1]!;
}

/** `index` of a bytecode; below 0 or above all: where in the method is not known. */
export function frameOf({ name, file, lines }: JavaMethod, index: number): RuntimeFrame {
  const startLine = lines.lines[0] ?? 0;
  const isKnown = index >= 0 && index < MAX_BYTECODES;
  return { name, file, line: isKnown ? lineAt(lines, index) : startLine, column: 0, startLine };
}
