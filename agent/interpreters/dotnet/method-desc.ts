/** What a MethodDesc is: a method of a module, by its row in the module's metadata, or one that was made at run time. */
import { CannotRead, type RuntimeMemory } from '../runtime-memory.ts';
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
  const module = memory.word(memory.word(ofChunk + chunk.methodTable) + methodTable.module);
  if (row === 0) throw new CannotRead('malformed');
  return { module, row };
}
