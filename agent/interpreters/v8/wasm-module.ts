/**
 * Names of a WebAssembly module's functions, from its binary (WebAssembly core specification 2.0, sections 5.5 and
 * 7.4.1): the "name" section that tool chains write, else what the module exports. A binary is a row of sections, each with
 * a number and a length. Foreign bytes: what contradicts itself costs the names behind it.
 */

import { OutOfBounds } from '../../../common/base/byte-source.ts';
import { Cursor } from '../../../common/base/cursor.ts';

/** Of the binary; undefined where they can't be read. Bytes that are kept have to be copied. */
export type ReadBinary = (at: number, length: number) => Uint8Array | undefined;

export interface WasmModule {
  /** By index of the function, the imported ones first: where in the binary its name stands, 0 if it has none. */
  namesAt: Uint32Array;
  /** How many come from outside: they have indices and no code. */
  importedCount: number;
}

export const HEADER = Buffer.from('\0asm\x01\0\0\0', 'latin1');
const MAX_SECTIONS = 1024;
const MAX_SECTION_BYTES = 16 << 20;
/** V8's own limit. */
const MAX_FUNCTIONS = 1_000_000;
const MAX_NAME_BYTES = 1024;
const MAX_LEB_BYTES = 5;
const SectionId = { CUSTOM: 0, IMPORT: 2, FUNCTION: 3, EXPORT: 7 } as const;
const External = { FUNCTION: 0, TABLE: 1, MEMORY: 2, GLOBAL: 3, TAG: 4 } as const;
/** Of the names. */
const FUNCTIONS = 1;
const HAS_MAXIMUM = 1;
/** Types that are followed by a heap type: ref null, ref. */
const REFERENCES: readonly number[] = [0x63, 0x64];

interface Section {
  id: number;
  at: number;
  length: number;
}

/** Undefined where it does not begin like a module. */
export function readWasmModule(read: ReadBinary, length: number): WasmModule | undefined {
  const head = read(0, HEADER.length);
  if (!head || !HEADER.equals(head)) return undefined;
  const module: WasmModule = { namesAt: new Uint32Array(0), importedCount: 0 };
  try {
    for (const section of sectionsOf(read, length)) readSection(read, section, module);
  } catch (error) {
    // what was read before is right
    if (!(error instanceof OutOfBounds)) throw error;
  }
  return module;
}

/** `wasm-function[7]`, as V8 says it, where the module has no name for it. */
export function functionName(read: ReadBinary, { namesAt }: WasmModule, index: number): string {
  const at = namesAt[index] ?? 0;
  const bytes = at > 0 && read(at, MAX_LEB_BYTES + MAX_NAME_BYTES);
  const name = bytes ? textAt(new Cursor(bytes)) : '';
  return name === '' ? `wasm-function[${index}]` : name;
}

function* sectionsOf(read: ReadBinary, length: number): Generator<Section> {
  let at = HEADER.length;
  for (let i = 0; i < MAX_SECTIONS && at < length; i++) {
    const bytes = read(at, 1 + MAX_LEB_BYTES);
    if (!bytes) return;
    const cursor = new Cursor(bytes);
    const section = { id: cursor.u8(), length: cursor.uleb(), at: at + cursor.at };
    yield section;
    at = section.at + section.length;
  }
}

function readSection(read: ReadBinary, { id, at, length }: Section, module: WasmModule): void {
  if (id === SectionId.FUNCTION) {
    const count = new Cursor(read(at, MAX_LEB_BYTES) ?? new Uint8Array(0)).uleb();
    module.namesAt = new Uint32Array(Math.min(module.importedCount + count, MAX_FUNCTIONS));
    return;
  }
  if (id !== SectionId.IMPORT && id !== SectionId.EXPORT && !isNames(read, { id, at, length })) return;
  const bytes = length <= MAX_SECTION_BYTES ? read(at, length) : undefined;
  if (!bytes) return;
  const cursor = new Cursor(bytes);
  if (id === SectionId.IMPORT) countImports(cursor, module);
  else if (id === SectionId.EXPORT) readExports(cursor, at, module);
  else readNames(cursor, at, module);
}

const NAME = Buffer.from('\x04name', 'latin1');

function isNames(read: ReadBinary, { id, at, length }: Section): boolean {
  const bytes = id === SectionId.CUSTOM && length >= NAME.length && read(at, NAME.length);
  return bytes !== undefined && bytes !== false && NAME.equals(bytes);
}

function countImports(cursor: Cursor, module: WasmModule): void {
  for (let left = cursor.uleb(); left > 0; left--) {
    skipText(cursor);
    skipText(cursor);
    const kind = cursor.u8();
    if (kind === External.FUNCTION) module.importedCount++;
    skipExternalType(cursor, kind);
  }
}

function skipExternalType(cursor: Cursor, kind: number): void {
  if (kind === External.FUNCTION) {
    cursor.uleb();
  } else if (kind === External.TABLE) {
    skipType(cursor);
    skipLimits(cursor);
  } else if (kind === External.MEMORY) {
    skipLimits(cursor);
  } else if (kind === External.GLOBAL) {
    skipType(cursor);
    cursor.u8();
  } else if (kind === External.TAG) {
    cursor.u8();
    cursor.uleb();
  } else throw new OutOfBounds(`an import of kind ${kind}`);
}

function skipType(cursor: Cursor): void {
  if (REFERENCES.includes(cursor.u8())) cursor.uleb();
}

function skipLimits(cursor: Cursor): void {
  const flags = cursor.u8();
  cursor.uleb();
  if (flags & HAS_MAXIMUM) cursor.uleb();
}

function readExports(cursor: Cursor, base: number, { namesAt }: WasmModule): void {
  for (let left = cursor.uleb(); left > 0; left--) {
    const { at } = cursor;
    skipText(cursor);
    const kind = cursor.u8();
    const index = cursor.uleb();
    if (kind === External.FUNCTION && index < namesAt.length && namesAt[index] === 0)
      namesAt[index] = base + at;
  }
}

function readNames(cursor: Cursor, base: number, module: WasmModule): void {
  skipText(cursor);
  while (cursor.left > 0) {
    const id = cursor.u8();
    const end = cursor.uleb() + cursor.at;
    if (id === FUNCTIONS) readFunctionNames(cursor, base, module);
    cursor.at = end;
  }
}

function readFunctionNames(cursor: Cursor, base: number, { namesAt }: WasmModule): void {
  for (let left = cursor.uleb(); left > 0; left--) {
    const index = cursor.uleb();
    const { at } = cursor;
    skipText(cursor);
    if (index < namesAt.length) namesAt[index] = base + at;
  }
}

const skipText = (cursor: Cursor): number => cursor.skip(cursor.uleb());

/** No longer than {@link MAX_NAME_BYTES}; of what ends too early what there is. */
function textAt(cursor: Cursor): string {
  const length = Math.min(cursor.uleb(), MAX_NAME_BYTES, cursor.left);
  const { buffer, byteOffset } = cursor.bytes;
  return Buffer.from(buffer, byteOffset + cursor.skip(length), length).toString('utf8');
}
