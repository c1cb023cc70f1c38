/** What a MethodDesc is: a method of a module, by its row in the module's metadata, or one that was made at run time. */
import { EF_DOTNET_NAME_BEFORE, EF_DOTNET_NAME_WORDS } from '../../records/records.gen.ts';
import { hashOfWords } from '../cookie.ts';
import { CannotRead, type RuntimeMemory, wordAt } from '../runtime-memory.ts';
import type { DotnetLayout } from './layout.ts';

export interface MethodToken {
  module: number;
  /** In MethodDef, from 1. */
  row: number;
}

const KIND_MASK = 7;
const DYNAMIC = 7;
const TOKEN_BITS = 24;
const MAX_NAME_BYTES = 256;

/** What the unwinder takes with a method of an assembly that may be unloaded (ebpf/dotnet/unwind.h): 64 bits. Throws CannotRead. */
export function namedCookie(
  memory: RuntimeMemory,
  { method, chunk, methodTable, simpleName }: DotnetLayout,
  address: number,
): bigint {
  const index = memory.u8(address + method.chunkIndex);
  const ofChunk = address - index * method.alignment - chunk.size;
  const module = memory.word(memory.word(ofChunk + chunk.methodTable) + methodTable.module);
  const name = memory.word(module + simpleName);
  return hashOfWords([BigInt(address), BigInt(name), ...namesAround(memory, name)]);
}

/** What stands where an assembly has its name; nothing where that can't be read. */
export function namesAround(memory: RuntimeMemory, name: number): bigint[] {
  const bytes = memory.whole(name - EF_DOTNET_NAME_BEFORE, EF_DOTNET_NAME_WORDS * 8);
  const names = new BigUint64Array(bytes ? Uint8Array.from(bytes).buffer : new ArrayBuffer(0));
  return [...names];
}

/** A text: the name of a dynamic method, '' where it has none. Throws CannotRead. */
export function readMethodDesc(
  memory: RuntimeMemory,
  { method, chunk, methodTable, dynamicName }: DotnetLayout,
  address: number,
): MethodToken | string {
  const view = memory.view(address, 8);
  if ((view.getUint16(method.flags, true) & KIND_MASK) === DYNAMIC) {
    const name = memory.word(address + dynamicName);
    return name === 0 ? '' : memory.text(name, MAX_NAME_BYTES);
  }
  const index = view.getUint8(method.chunkIndex);
  const ofChunk = address - index * method.alignment - chunk.size;
  const { remainderBits } = method;
  const remainder = view.getUint16(method.flags3, true) % 2 ** remainderBits;
  const range = memory.u16(ofChunk + chunk.range) % 2 ** (TOKEN_BITS - remainderBits);
  const row = range * 2 ** remainderBits + remainder;
  const table = memory.word(ofChunk + chunk.methodTable);
  const module = methodTable.hasOverrides
    ? overridden(memory, table, methodTable.module)
    : memory.word(table + methodTable.module);
  if (row === 0) throw new CannotRead('malformed');
  return { module, row };
}

const TABLE_BYTES = 64;
const FLAGS = 8;
const HAS_OVERRIDE = 16;
const VIRTUAL_COUNT = 12;
const VIRTUALS_IN_BLOCK = 8;
const FIRST_SLOT = 48;
const OWN_SLOTS = 2;

/** The module of a type's methods in .NET 6 and 7. An instance of a generic type may have been loaded by the module of one of its
 * arguments; then a slot has the type's own. The first two of the slots that a MethodTable may have are in it, others behind the
 * pointers to its blocks of virtual methods; a bit says of each whether there is one. */
function overridden(memory: RuntimeMemory, table: number, loader: number): number {
  const view = memory.view(table, TABLE_BYTES);
  const flags = view.getUint16(FLAGS, true);
  if ((flags & HAS_OVERRIDE) === 0) return wordAt(view, loader);
  let before = 0;
  for (let bit = 1; bit < HAS_OVERRIDE; bit *= 2) if (flags & bit) before++;
  if (before < OWN_SLOTS) return wordAt(view, FIRST_SLOT + before * 8);
  const blocks = Math.ceil(view.getUint16(VIRTUAL_COUNT, true) / VIRTUALS_IN_BLOCK);
  return memory.word(table + TABLE_BYTES + (blocks + before - OWN_SLOTS) * 8);
}
