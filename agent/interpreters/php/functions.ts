/** PHP's functions, read out of a live process: zend_function, zend_string, zend_class_entry. */
import type { NameFailure, ProcessMemory, SampledFunction } from '../contract.ts';
import { cookieOf32Bits } from '../cookie.ts';
import { CLASS_NAME, FUNCTION, type PhpLayout, STRING } from './layout.ts';

export interface PhpFunction {
  /** `Class::method`, `function`, `{closure:12}`, `{main}` for the code of a file. */
  name: string;
  /** '' where it is written in C. */
  file: string;
  firstLine: number;
  lastLine: number;
}

const INTERNAL = 1;
const USER = 2;
const EVAL = 4;
const HEAD_BYTES = 24;
/** Its file, and its first and last line. */
const PLACE_BYTES = 16;
const MAX_NAME = 512;
const MAX_FILE = 4096;
const MAX_ADDRESS = 2 ** 48;
/** What closures are called before 8.4, which says where they stand. */
const CLOSURE = '{closure}';

/** The cookie says whether it is still the function that BPF saw. */
export function readFunction(
  memory: ProcessMemory,
  { functionFile }: PhpLayout,
  address: number,
  cookie: number,
): PhpFunction | NameFailure {
  const head = viewOf(memory, address, HEAD_BYTES);
  if (!head) return 'unreadable';
  const type = head.getUint8(FUNCTION.type);
  // freed: the type goes first, what the cookie is made of may still stand there
  if (type !== INTERNAL && type !== USER && type !== EVAL) return 'replaced';
  const place = type === INTERNAL ? EMPTY_PLACE : viewOf(memory, address + functionFile, PLACE_BYTES);
  if (!place) return 'unreadable';
  if (functionCookie(head, place) !== cookie) return 'replaced';
  const [firstLine, lastLine] = [place.getUint32(8, true), place.getUint32(12, true)];
  const name = nameOf(memory, head, type, firstLine);
  const file = type === INTERNAL ? '' : readString(memory, pointerAt(place, 0), MAX_FILE);
  if (name === undefined || file === undefined) return 'malformed';
  return { name, file, firstLine, lastLine };
}

/** Must equal php_cookie() of ebpf/php/unwind.h. */
export function functionCookie(head: DataView, place: DataView): number {
  return cookieOf32Bits([
    head.getBigUint64(FUNCTION.name, true),
    head.getBigUint64(FUNCTION.scope, true),
    place.getBigUint64(0, true),
    place.getBigUint64(8, true),
  ]);
}

const EMPTY_PLACE = new DataView(new ArrayBuffer(PLACE_BYTES));

function nameOf(memory: ProcessMemory, head: DataView, type: number, firstLine: number): string | undefined {
  const at = pointerAt(head, FUNCTION.name);
  const name = at === 0 ? '' : readString(memory, at, MAX_NAME);
  const scope = pointerAt(head, FUNCTION.scope);
  const className = scope === 0 ? '' : readString(memory, wordAt(memory, scope + CLASS_NAME), MAX_NAME);
  if (name === undefined || className === undefined) return undefined;
  return fullName(type, className, name, firstLine);
}

/** Of one that the unwinder has read. */
export const sampledFunction = (read: SampledFunction): PhpFunction => ({
  name: fullName(read.kind, read.className, read.name, read.firstLine),
  file: read.file,
  firstLine: read.firstLine,
  lastLine: read.lastLine,
});

function fullName(type: number, className: string, plain: string, firstLine: number): string {
  if (plain === '') return type === EVAL ? '{eval}' : '{main}';
  const name = closureName(plain, firstLine, className !== '') ?? plain;
  return className === '' ? name : `${className}::${name}`;
}

/** Undefined for what is not a closure, or says where it stands. The class has its namespace already. */
function closureName(plain: string, firstLine: number, hasClass: boolean): string | undefined {
  if (!plain.endsWith(CLOSURE) || firstLine === 0) return undefined;
  const namespace = hasClass ? '' : plain.slice(0, plain.length - CLOSURE.length);
  return `${namespace}{closure:${firstLine}}`;
}

/** Undefined where no string is there. An anonymous class has a NUL and the place of its definition behind its name. */
function readString(memory: ProcessMemory, address: number, maxBytes: number): string | undefined {
  const head = viewOf(memory, address, STRING.data);
  if (!head) return undefined;
  const length = head.getUint32(STRING.length, true) + head.getUint32(STRING.length + 4, true) * 2 ** 32;
  const bytes =
    length > 0 ? memory.read(address + STRING.data, Math.min(length, maxBytes)) : new Uint8Array(0);
  if (bytes?.length !== Math.min(length, maxBytes)) return undefined;
  const end = bytes.indexOf(0);
  const text = Buffer.from(end < 0 ? bytes : bytes.subarray(0, end)).toString();
  return length > maxBytes ? `${text}…` : text;
}

function viewOf(memory: ProcessMemory, address: number, length: number): DataView | undefined {
  if (!(address > 0 && address + length < MAX_ADDRESS)) return undefined;
  const bytes = memory.read(address, length);
  return bytes?.length === length ? new DataView(bytes.buffer, bytes.byteOffset, length) : undefined;
}

const pointerAt = (view: DataView, at: number): number =>
  view.getUint32(at + 4, true) * 2 ** 32 + view.getUint32(at, true);

function wordAt(memory: ProcessMemory, address: number): number {
  const view = viewOf(memory, address, 8);
  return view ? pointerAt(view, 0) : 0;
}
