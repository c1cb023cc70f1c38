/**
 * Reads a code object out of a live process: names, file, line table. What BPF put into a trace is its address, an
 * offset into its code and a cookie; the cookie is formed from the same words that are read here, so that another
 * object at the address, which is what a garbage collector leaves behind, is told from the one that was sampled.
 */
import type { NameFailure, ProcessMemory } from '../contract.ts';
import type { PythonLayout, StringLayout } from './layout.ts';
import { findPlace, lineTableKind, type Place } from './line-table.ts';

export interface CodeObject {
  /** `Class.method` from 3.11 on, before that `method`. */
  name: string;
  file: string;
  firstLine: number;
  minor: number;
  lineTable: Uint8Array;
}

const HEADER_BYTES = 192;
const MAX_NAME_CHARS = 1024;
const MAX_FILE_CHARS = 4096;
const MAX_LINE_TABLE = 1 << 20;
const MASK = (1n << 64n) - 1n;

export function readCodeObject(
  memory: ProcessMemory,
  { layout, minor }: { layout: PythonLayout; minor: number },
  address: number,
  cookie: number,
): CodeObject | NameFailure {
  const bytes = memory.read(address, HEADER_BYTES);
  if (bytes?.length !== HEADER_BYTES) return 'unreadable';
  const header = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (codeCookie(header, layout) !== cookie) return 'replaced';
  const name = readString(memory, pointer(header, layout.codeQualname || layout.codeName), layout.strings, {
    maxChars: MAX_NAME_CHARS,
  });
  const file = readString(memory, pointer(header, layout.codeFilename), layout.strings, {
    maxChars: MAX_FILE_CHARS,
  });
  const lineTable = readBytes(memory, pointer(header, layout.codeLineTable), layout);
  if (name === undefined || file === undefined) return 'malformed';
  return {
    name,
    file,
    firstLine: header.getInt32(layout.codeFirstLine, true),
    minor,
    lineTable: lineTable?.slice() ?? new Uint8Array(0),
  };
}

/** The place of the instruction at a byte offset; the function's first line where the table says nothing. */
export function placeOf(code: CodeObject, offset: number): Place {
  const place = findPlace(lineTableKind(code.minor), code.lineTable, code.firstLine, offset);
  return place.line > 0 ? place : { line: code.firstLine, column: 0 };
}

/** Must equal code_cookie() of ebpf/python.h. */
export function codeCookie(header: DataView, layout: PythonLayout): number {
  let hash = 0x9e3779b97f4a7c15n;
  const fold = (word: bigint): void => {
    const h = ((hash ^ word) * 0xff51afd7ed558ccdn) & MASK;
    hash = h ^ (h >> 32n);
  };
  const word = (at: number): bigint => header.getBigUint64(at, true);
  fold(
    (BigInt(header.getUint32(layout.codeFlags, true)) << 32n) |
      BigInt(header.getUint32(layout.codeFirstLine, true)),
  );
  fold(word(layout.codeFilename));
  fold(word(layout.codeName));
  fold(word(layout.codeLineTable));
  return Number(hash & 0xffffffffn);
}

const pointer = (view: DataView, at: number): number =>
  view.getUint32(at + 4, true) * 2 ** 32 + view.getUint32(at, true);

function readBytes(memory: ProcessMemory, address: number, layout: PythonLayout): Uint8Array | undefined {
  const head = memory.read(address, layout.bytesData);
  if (head?.length !== layout.bytesData) return undefined;
  const size = pointer(new DataView(head.buffer, head.byteOffset, head.length), layout.bytesSize);
  if (!(size >= 0 && size <= MAX_LINE_TABLE)) return undefined;
  const data = size === 0 ? new Uint8Array(0) : memory.read(address + layout.bytesData, size);
  return data?.length === size ? data : undefined;
}

/** The decoding of each kind: how many bytes a character has. */
const KINDS: Readonly<Record<number, { bytes: number; decode(data: Uint8Array): string }>> = {
  1: { bytes: 1, decode: (data) => Buffer.from(data).toString('latin1') },
  2: { bytes: 2, decode: (data) => Buffer.from(data).toString('utf16le') },
  4: { bytes: 4, decode: decodeUcs4 },
};

/** A str object in its compact form, which is the only one that names of code have; cut at `maxChars`. */
function readString(
  memory: ProcessMemory,
  address: number,
  layout: StringLayout,
  { maxChars }: { maxChars: number },
): string | undefined {
  const head = memory.read(address, layout.asciiData);
  if (head?.length !== layout.asciiData) return undefined;
  const view = new DataView(head.buffer, head.byteOffset, head.length);
  const state = view.getUint32(layout.state, true) >>> layout.kindShift;
  const kind = KINDS[state & 7];
  const [isCompact, isAscii] = [(state & 8) !== 0, (state & 16) !== 0];
  if (!kind || !isCompact || (isAscii && kind.bytes !== 1)) return undefined;
  const length = pointer(view, layout.length);
  const chars = Math.min(length, maxChars);
  if (chars === 0) return '';
  const data = memory.read(address + (isAscii ? layout.asciiData : layout.compactData), chars * kind.bytes);
  if (data?.length !== chars * kind.bytes) return undefined;
  return kind.decode(data) + (length > maxChars ? '…' : '');
}

function decodeUcs4(data: Uint8Array): string {
  const view = new DataView(data.buffer, data.byteOffset, data.length);
  let text = '';
  for (let at = 0; at + 4 <= data.length; at += 4) {
    const point = view.getUint32(at, true);
    text += point > 0x10ffff ? '\ufffd' : String.fromCodePoint(point);
  }
  return text;
}
