/**
 * Is V8 in this ELF file, which version, and where are its built-in functions? V8 exports what a debugger needs to
 * know of its objects as integers with names that begin with `v8dbg_` (V8's tools/gen-postmortem-metadata.py), in
 * .dynsym, also of stripped builds. The file's name doesn't matter: `node` and libnode look alike. For a V8 that exports
 * nothing see unnamed-v8.ts.
 */
import { bytesAt } from '../../../common/elf/bytes-at.ts';
import { type ElfFile, PT_GNU_EH_FRAME, SHT_DYNSYM, SHT_SYMTAB } from '../../../common/elf/elf.ts';
import { forEachEntry, readStrings, readU64 } from '../../../common/symbols/section-entries.ts';
import { UnsupportedRuntime } from '../contract.ts';
import { findBytecodeSizes } from './bytecode-sizes.ts';
import { windowsOfConstants } from './constants.ts';
import { findUnnamedV8 } from './unnamed-v8.ts';

export interface V8Version {
  major: number;
  minor: number;
  /** `11.3.244`. */
  text: string;
}

export interface V8Binary {
  version: V8Version;
  /** The constants without `v8dbg_`. */
  constants: ReadonlyMap<string, number>;
  bytecodeSizes: Uint8Array | undefined;
  /** Offset in the file of the built-in functions, and bytes. */
  blob: { start: number; length: number };
}

const PREFIX = 'v8dbg_';
const BYTECODE_SIZES = '_ZN2v88internal11interpreter9Bytecodes14kBytecodeSizesE';
const VERSION_PARTS = ['major', 'minor', 'build'] as const;
const versionSymbol = (part: (typeof VERSION_PARTS)[number]): string => `_ZN2v88internal7Version6${part}_E`;
const MAX_BYTECODE_SIZES = 3 * 256;
const SYMBOL_BYTES = 24;
const MAX_SYMBOLS = 1 << 22;
/** V8 has about 500. */
const MAX_CONSTANTS = 4096;
const MAX_NAME_BYTES = 256;
const MAX_FUNCTIONS = 1 << 21;
/** The built-in functions take 1.3 MB and more in every version; no other code has a hole like that. */
const MIN_BLOB_BYTES = 512 << 10;

/** Undefined where the file has no V8. Throws {@link UnsupportedRuntime}. */
export function detectV8(elf: ElfFile): V8Binary | undefined {
  const symbols = readSymbols(elf);
  if (!symbols?.constants.has('HeapObjectTag')) return findWithoutSymbols(elf);
  const { constants, parts } = symbols;
  const bytecodeSizes = symbols.bytecodeSizes ?? findHiddenSizes(elf);
  const [major, minor, build] = [parts.get('major'), parts.get('minor'), parts.get('build')];
  if (major === undefined || minor === undefined) throw new UnsupportedRuntime('V8 of unknown version');
  const version = { major, minor, text: `${major}.${minor}.${build ?? 0}` };
  return { version, constants, bytecodeSizes, blob: findBlob(elf, version) };
}

interface Symbols {
  constants: Map<string, number>;
  /** Of the version. */
  parts: Map<string, number>;
  bytecodeSizes: Uint8Array | undefined;
}

/** Of the first symbol table that has V8's constants. */
function readSymbols(elf: ElfFile): Symbols | undefined {
  for (const section of elf.sections) {
    if (section.type !== SHT_DYNSYM && section.type !== SHT_SYMTAB) continue;
    const bytes = readStrings(elf, section);
    const names = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    if (!names.includes(PREFIX)) continue;
    const symbols: Symbols = { constants: new Map(), parts: new Map(), bytecodeSizes: undefined };
    const wanted = offsetsOf(names, [BYTECODE_SIZES, ...VERSION_PARTS.map(versionSymbol)]);
    forEachEntry(elf, section, { entryBytes: SYMBOL_BYTES, limit: MAX_SYMBOLS }, (view, at) => {
      const nameOffset = view.getUint32(at, true);
      // of 80,000 names: a text of each would take as long as all the rest
      if (!beginsWithPrefix(names, nameOffset) && !wanted.has(nameOffset)) return;
      const name = wanted.get(nameOffset) ?? nameAt(names, nameOffset);
      addSymbol(elf, symbols, { name, address: readU64(view, at + 8), size: readU64(view, at + 16) });
    });
    if (symbols.constants.size > 0) return symbols;
  }
  return undefined;
}

function findWithoutSymbols(elf: ElfFile): V8Binary | undefined {
  const found = findUnnamedV8(elf);
  return found && { ...found, bytecodeSizes: findHiddenSizes(elf) };
}

/** From V8 13 on the table is not a public symbol any more. */
function findHiddenSizes(elf: ElfFile): Uint8Array | undefined {
  for (const data of windowsOfConstants(elf)) {
    const sizes = findBytecodeSizes(data);
    if (sizes) return sizes;
  }
  return undefined;
}

function addSymbol(
  elf: ElfFile,
  symbols: Symbols,
  { name, address, size }: { name: string; address: number; size: number },
): void {
  if (name === BYTECODE_SIZES && size <= MAX_BYTECODE_SIZES)
    symbols.bytecodeSizes = bytesAt(elf, address, size)?.slice();
  if (size !== 4) return;
  const part = VERSION_PARTS.find((one) => name === versionSymbol(one));
  const bytes = bytesAt(elf, address, 4);
  if (!bytes || symbols.constants.size >= MAX_CONSTANTS) return;
  const value = new DataView(bytes.buffer, bytes.byteOffset, 4).getInt32(0, true);
  if (part) symbols.parts.set(part, value);
  else if (name.startsWith(PREFIX)) symbols.constants.set(name.slice(PREFIX.length), value);
}

const [PREFIX_0, PREFIX_1] = Buffer.from(PREFIX) as unknown as [number, number];

/** Nearly: names of others are told apart once they are read. */
const beginsWithPrefix = (names: Buffer, at: number): boolean =>
  names[at] === PREFIX_0 && names[at + 1] === PREFIX_1;

/** Where these names stand among `names`. */
function offsetsOf(names: Buffer, wanted: readonly string[]): Map<number, string> {
  const found = wanted.map((name) => [names.indexOf(`\0${name}\0`, 0, 'latin1') + 1, name] as const);
  return new Map(found.filter(([at]) => at > 0));
}

function nameAt(names: Buffer, at: number): string {
  const end = names.indexOf(0, at);
  return names.toString('latin1', at, Math.min(end < 0 ? names.length : end, at + MAX_NAME_BYTES));
}

/** The built-in functions have no unwind information: they are the largest hole between functions that have. */
function findBlob(elf: ElfFile, { text }: V8Version): { start: number; length: number } {
  const segment = elf.segments.find(({ type }) => type === PT_GNU_EH_FRAME);
  if (!segment || segment.filesz < 12) throw new UnsupportedRuntime(`V8 ${text}: no .eh_frame_hdr`);
  const head = elf.source.read(segment.offset, 12);
  const count = Math.min(
    new DataView(head.buffer, head.byteOffset).getUint32(8, true),
    MAX_FUNCTIONS,
    Math.floor((segment.filesz - 12) / 8),
  );
  const bytes = elf.source.read(segment.offset + 12, count * 8);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const text0 = elf.section('.text');
  const endOfText = text0 ? text0.addr + text0.size : Number.POSITIVE_INFINITY;
  let best = { start: 0, length: MIN_BLOB_BYTES };
  for (let i = 0; i < count; i++) {
    const start = segment.vaddr + view.getInt32(i * 8, true);
    const next = i + 1 < count ? segment.vaddr + view.getInt32(i * 8 + 8, true) : endOfText;
    if (start >= endOfText || next > endOfText || next - start <= best.length) continue;
    const end = start + functionSize(elf, segment.vaddr + view.getInt32(i * 8 + 4, true));
    if (next - end > best.length) best = { start: end, length: next - end };
  }
  const offset = elf.addressToFileOffset(best.start);
  if (best.start === 0 || offset === undefined)
    throw new UnsupportedRuntime(`V8 ${text}: its built-in functions were not found`);
  return { start: offset, length: best.length };
}

/** Of an FDE as linkers write it: length, CIE, start relative to itself, size. */
function functionSize(elf: ElfFile, fde: number): number {
  const at = elf.addressToFileOffset(fde);
  if (at === undefined || at + 16 > elf.source.size) return 0;
  const bytes = elf.source.read(at, 16);
  return new DataView(bytes.buffer, bytes.byteOffset, 16).getUint32(12, true);
}
