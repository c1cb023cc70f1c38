/**
 * Reads a code object out of a live process: names, file, line table. What BPF put into a trace is its address, an
 * offset into its code and a cookie; the cookie is formed from the same words that are read here, so that another
 * object at the address, which is what a garbage collector leaves behind, is told from the one that was sampled.
 */
import type { NameFailure, ProcessMemory } from '../contract.ts';
import { cookieOf32Bits } from '../cookie.ts';
import type { PythonLayout } from './layout.ts';
import { findPlace, lineTableKind, type Place } from './line-table.ts';
import { ObjectTypes, pointerAt } from './objects.ts';

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

/** What is known of a process beyond single code objects. */
export class PythonProcess {
  readonly types = new ObjectTypes();
  /** File names by address, of code that was alive: functions hold on to them after the code of their module is gone. */
  readonly files = new Map<number, string>();
}

const MAX_FILES = 4096;
/** The code of a module runs once and is freed while its functions live on. */
const MODULE_NAME = '<module>';

export function readCodeObject(
  memory: ProcessMemory,
  { layout, minor }: { layout: PythonLayout; minor: number },
  address: number,
  cookie: number,
  known = new PythonProcess(),
): CodeObject | NameFailure {
  const bytes = memory.read(address, HEADER_BYTES);
  if (bytes?.length !== HEADER_BYTES) return 'unreadable';
  const header = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (codeCookie(header, layout) !== cookie) return 'replaced';
  const reader = new ObjectReader(memory, layout, known.types);
  const firstLine = header.getInt32(layout.codeFirstLine, true);
  const fileAt = pointerAt(header, layout.codeFilename);
  if (known.types.typeOf(memory, header, layout.objectType) !== 'code')
    return moduleOf(reader.string(pointerAt(header, layout.codeName), MAX_NAME_CHARS), {
      file: known.files.get(fileAt) === reader.string(fileAt, MAX_FILE_CHARS) ? known.files.get(fileAt) : '',
      firstLine,
      minor,
    });
  const name = reader.string(pointerAt(header, layout.codeQualname || layout.codeName), MAX_NAME_CHARS);
  const file = reader.string(fileAt, MAX_FILE_CHARS);
  const failure = reader.failure;
  if (failure) return failure;
  if (known.files.size >= MAX_FILES) known.files.clear();
  known.files.set(fileAt, file!);
  const lineTable = reader.bytes(pointerAt(header, layout.codeLineTable));
  return { name: name!, file: file!, firstLine, minor, lineTable: lineTable?.slice() ?? new Uint8Array(0) };
}

/**
 * The object was freed, and its words still stand there. Of a module's code the name is the same object as that of every
 * other module's; any other may be something else by now.
 */
const moduleOf = (
  name: string | undefined,
  rest: { file: string | undefined; firstLine: number; minor: number },
): CodeObject | NameFailure =>
  name === MODULE_NAME ? { ...rest, name, file: rest.file ?? '', lineTable: new Uint8Array(0) } : 'replaced';

/** The place of the instruction at a byte offset; the function's first line where the table says nothing. */
export function placeOf(code: CodeObject, offset: number): Place {
  const place = findPlace(lineTableKind(code.minor), code.lineTable, code.firstLine, offset);
  return place.line > 0 ? place : { line: code.firstLine, column: 0 };
}

/** Must equal code_cookie() of ebpf/python/unwind.h. */
export function codeCookie(header: DataView, layout: PythonLayout): number {
  const half = (at: number): bigint => BigInt(header.getUint32(at, true));
  const word = (at: number): bigint => header.getBigUint64(at, true);
  return cookieOf32Bits([
    (half(layout.codeFlags) << 32n) | half(layout.codeFirstLine),
    word(layout.codeFilename),
    word(layout.codeName),
    word(layout.codeLineTable),
  ]);
}

/** The decoding of each kind: how many bytes a character has. */
const KINDS: Readonly<Record<number, { bytes: number; decode(data: Uint8Array): string }>> = {
  1: { bytes: 1, decode: (data) => Buffer.from(data).toString('latin1') },
  2: { bytes: 2, decode: (data) => Buffer.from(data).toString('utf16le') },
  4: { bytes: 4, decode: decodeUcs4 },
};

/** Reads what code objects point to. */
class ObjectReader {
  readonly #memory: ProcessMemory;
  readonly #layout: PythonLayout;
  readonly #types: ObjectTypes;
  /** Of the strings that were read: why one could not be. */
  failure: NameFailure | undefined;

  constructor(memory: ProcessMemory, layout: PythonLayout, types: ObjectTypes) {
    this.#memory = memory;
    this.#layout = layout;
    this.#types = types;
  }

  /** Of a str object, cut at `maxChars`; undefined where it is none that can be read. */
  string(address: number, maxChars: number): string | undefined {
    const { strings, objectType } = this.#layout;
    const head = this.#memory.read(address, strings.asciiData);
    if (head?.length !== strings.asciiData) return this.#fail('unreadable');
    const view = new DataView(head.buffer, head.byteOffset, head.length);
    if (this.#types.typeOf(this.#memory, view, objectType) !== 'str') return this.#fail('replaced');
    const state = view.getUint32(strings.state, true) >>> strings.kindShift;
    const kind = KINDS[state & 7];
    const [isCompact, isAscii] = [(state & 8) !== 0, (state & 16) !== 0];
    if (!kind || (isAscii && kind.bytes !== 1)) return this.#fail('malformed');
    const length = pointerAt(view, strings.length);
    const chars = Math.min(length, maxChars);
    if (chars === 0) return '';
    // subclasses of str keep their characters elsewhere
    const behind = address + (isCompact && isAscii ? strings.asciiData : strings.compactData);
    const data = this.#memory.read(isCompact ? behind : this.#pointer(behind), chars * kind.bytes);
    if (data?.length !== chars * kind.bytes) return this.#fail('malformed');
    return kind.decode(data) + (length > maxChars ? '…' : '');
  }

  bytes(address: number): Uint8Array | undefined {
    const { bytesData, bytesSize, objectType } = this.#layout;
    const head = this.#memory.read(address, bytesData);
    if (head?.length !== bytesData) return undefined;
    const view = new DataView(head.buffer, head.byteOffset, head.length);
    if (this.#types.typeOf(this.#memory, view, objectType) !== 'bytes') return undefined;
    const size = pointerAt(view, bytesSize);
    if (!(size >= 0 && size <= MAX_LINE_TABLE)) return undefined;
    const data = size === 0 ? new Uint8Array(0) : this.#memory.read(address + bytesData, size);
    return data?.length === size ? data : undefined;
  }

  #pointer(address: number): number {
    const bytes = this.#memory.read(address, 8);
    return bytes?.length === 8 ? pointerAt(new DataView(bytes.buffer, bytes.byteOffset, 8), 0) : 0;
  }

  #fail(failure: NameFailure): undefined {
    this.failure ??= failure;
  }
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
