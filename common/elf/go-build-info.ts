/**
 * The release of Go that a program was built with, from what its linker puts in also when it strips: .go.buildinfo. Layout:
 * debug/buildinfo/buildinfo.go. Before Go 1.18 it has the address of the text, since then the text.
 */
import { OutOfBounds } from '../base/byte-source.ts';
import { Cursor } from '../base/cursor.ts';
import type { ElfFile } from './elf.ts';
import { findInData, pointerAt } from './go-module.ts';

const MAGIC = Buffer.from('\xff Go buildinf:', 'latin1');
const ALIGNMENT = 16;
const FLAGS_AT = 15;
const HAS_TEXT = 2;
const ADDRESS_AT = 16;
const TEXT_AT = 32;
const MAX_VERSION_BYTES = 256;
/** `go1.26.8`, `go1.27rc1 X:nodwarf5`, `devel go1.28-1a2b3c`. */
const VERSION = /\bgo(\d+\.\d+(?:\.\d+|[a-z]+\d+)?)/;

/** `1.26.8`; undefined where the file does not say it. */
export function readGoVersion(elf: ElfFile): string | undefined {
  try {
    const at = elf.section('.go.buildinfo')?.offset ?? findInData(elf, MAGIC, ALIGNMENT);
    return at === undefined ? undefined : VERSION.exec(readText(elf, at) ?? '')?.[1];
  } catch (error) {
    if (error instanceof OutOfBounds) return undefined;
    throw error;
  }
}

function readText(elf: ElfFile, at: number): string | undefined {
  const head = elf.source.read(at, TEXT_AT);
  if (!MAGIC.equals(head.subarray(0, MAGIC.length))) return undefined;
  if (head[FLAGS_AT]! & HAS_TEXT) {
    const cursor = new Cursor(
      elf.source.read(at + TEXT_AT, Math.min(MAX_VERSION_BYTES, elf.source.size - at - TEXT_AT)),
    );
    const length = cursor.uleb();
    return latin1(cursor.bytes.subarray(cursor.at, cursor.at + length));
  }
  const header = addressOf(head);
  const text = pointerAt(elf, header);
  const offset = text && elf.addressToFileOffset(text);
  const length = text && pointerAt(elf, header + 8);
  return offset && length ? latin1(elf.source.read(offset, Math.min(length, MAX_VERSION_BYTES))) : undefined;
}

const addressOf = (head: Uint8Array): number => new Cursor(head, ADDRESS_AT).u64();
const latin1 = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
