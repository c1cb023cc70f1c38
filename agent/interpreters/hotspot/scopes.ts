/**
 * From a program counter in compiled code to the methods that were inlined there. An nmethod has, sorted, the program
 * counters of which its compiler has told where they are (PcDesc), each with an offset into the scopes: a chain from the
 * innermost method outwards, of
 *
 *   where the caller's scope is, the number of the method, and its bytecode's index + 1
 *
 * in compressed numbers. Calls are found by their return address; all other code by the next counter that is told of,
 * which is how HotSpot itself does it.
 */
import { CannotRead, type RuntimeMemory } from '../runtime-memory.ts';
import type { HotspotLayout } from './layout.ts';
import { Unsigned5 } from './unsigned5.ts';

export interface ScopePlace {
  /** Address of the Method. */
  method: number;
  /** Of the bytecode; -1: the beginning. */
  index: number;
}

const PC_DESC_BYTES = 16;
const SCOPE_AT = 4;
/** Three numbers. */
const SCOPE_BYTES = 15;
/** C2 inlines 15 deep as a rule, and Graal more. */
const MAX_INLINED = 64;
const MAX_TABLE_BYTES = 4 << 20;
const MAX_METHODS = 65_536;

interface Tables {
  pcs: number;
  pcCount: number;
  scopes: number;
  metadata: number;
}

/** Innermost first; empty where only the method itself is known. Throws CannotRead. */
export function findScopes(
  memory: RuntimeMemory,
  layout: HotspotLayout,
  nmethod: number,
  offset: number,
): ScopePlace[] {
  const tables = findTables(memory, layout, nmethod);
  let scope = scopeAt(memory, tables, offset);
  const places: ScopePlace[] = [];
  while (scope > 0 && places.length < MAX_INLINED) {
    const bytes = memory.upTo(tables.scopes + scope, SCOPE_BYTES);
    const numbers = new Unsigned5(bytes, 0, layout.major);
    const [caller, method, index] = [numbers.unsigned(), numbers.unsigned(), numbers.unsigned() - 1];
    if (caller >= scope || method === 0 || method > MAX_METHODS) throw new CannotRead('malformed');
    places.push({ method: memory.word(tables.metadata + (method - 1) * 8), index });
    scope = caller;
  }
  return places;
}

function findTables(memory: RuntimeMemory, { scopes }: HotspotLayout, nmethod: number): Tables {
  const container = scopes.container < 0 ? nmethod : memory.word(nmethod + scopes.container);
  const pcs = memory.u32(nmethod + scopes.pcs);
  const pcBytes = memory.u32(nmethod + scopes.pcsEnd) - pcs;
  if (pcBytes < 0 || pcBytes > MAX_TABLE_BYTES) throw new CannotRead('malformed');
  return {
    pcs: container + pcs,
    pcCount: Math.floor(pcBytes / PC_DESC_BYTES),
    scopes: scopes.data.isOffset
      ? container + memory.u32(nmethod + scopes.data.at)
      : memory.word(nmethod + scopes.data.at),
    metadata: findMetadata(memory, scopes, nmethod),
  };
}

function findMetadata(
  memory: RuntimeMemory,
  { metadata, mutable }: HotspotLayout['scopes'],
  nmethod: number,
): number {
  if (mutable) return memory.word(nmethod + mutable.at) + memory.u32(nmethod + mutable.relocationSize);
  if (!metadata) throw new CannotRead('malformed');
  if (metadata.fromData < 0) return nmethod + memory.u32(nmethod + metadata.at);
  return nmethod + memory.u32(nmethod + metadata.fromData) + memory.u16(nmethod + metadata.at);
}

/** Offset of the scope of a program counter, 0: none is told of it. */
function scopeAt(memory: RuntimeMemory, { pcs, pcCount }: Tables, offset: number): number {
  let [low, high] = [0, pcCount];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (memory.i32(pcs + middle * PC_DESC_BYTES) < offset) low = middle + 1;
    else high = middle;
  }
  const scope = (i: number): number =>
    i >= 0 && i < pcCount ? memory.i32(pcs + i * PC_DESC_BYTES + SCOPE_AT) : 0;
  // the last one is the end of the code and says nothing
  return scope(low) || scope(low - 1);
}
