/**
 * What the JIT notes for debuggers of a method that it has compiled: which code is of which IL. Source: dotnet/runtime,
 * docs/design/datacontracts/DebugInfo.md, and live processes. A flag byte and what it announces (slots of a method that may be
 * replaced while it runs, the tree of inlined methods) stand first, then two sizes in nibbles, then the map: in nibbles, or from
 * .NET 10 on in as many bits as its largest numbers need.
 */
import { CannotRead, type RuntimeMemory } from '../runtime-memory.ts';
import { inlinedAt, type MethodPlace } from './inline-tree.ts';
import type { DotnetLayout, MapForm } from './layout.ts';
import { Nibbles } from './nibbles.ts';
import type { PrecompiledMap } from './precompiled-map.ts';

const HAS_PATCHPOINT = 1;
const HAS_RICH = 2;
const MAX_LOCALS = 1 << 16;
const MAX_RICH_BYTES = 256 << 10;
/** Two sizes of up to 11 nibbles. */
const SIZES_BYTES = 12;
const MAX_MAP_BYTES = 256 << 10;
/** IL offsets are more by that: the lowest ones say that the code is the prologue, the epilogue, or of no IL. */
const IL_BIAS = 3;
/** Of the kind of a place. */
const KIND_BITS = 2;

/** Where the code at `offset` of a compiled method comes from: the method itself and its IL, and what was inlined into it there
 * first, where that was noted. Throws CannotRead. */
export function placesOf(
  memory: RuntimeMemory,
  layout: DotnetLayout,
  { methodDesc, debugInfo, offset }: { methodDesc: number; debugInfo: number; offset: number },
): MethodPlace[] {
  const { rich, at } = readExtras(memory, layout, debugInfo);
  return rich
    ? inlinedAt(new Nibbles(rich), offset, layout.hasInlinedCalls)
    : [{ methodDesc, ilOffset: ilOffsetIn(readMap(memory, at), layout.mapForm, offset) }];
}

/** The same of a method that was compiled ahead. */
export const precompiledPlaceOf = (
  memory: RuntimeMemory,
  { methodDesc, map, offset }: { methodDesc: number; map: PrecompiledMap; offset: number },
): MethodPlace => ({ methodDesc, ilOffset: ilOffsetIn(readMap(memory, map.address), map.form, offset) });

/** 0 before the first place that has one. */
function ilOffsetIn(map: Nibbles, form: MapForm | undefined, offset: number): number {
  let [native, found] = [0, 0];
  for (const [step, biased] of form === 'bits' ? inBits(map) : inNibbles(map)) {
    native += step;
    if (native > offset) break;
    if (biased >= IL_BIAS) found = biased - IL_BIAS;
  }
  return found;
}

function* inNibbles(map: Nibbles): Generator<[number, number]> {
  for (let left = map.number(); left > 0; left--) {
    yield [map.number(), map.number()];
    map.number(); // what kind of place it is
  }
}

function* inBits(map: Nibbles): Generator<[number, number]> {
  const count = map.number();
  const [nativeBits, ilBits] = [map.number() + 1, map.number() + 1];
  if (nativeBits > 32 || ilBits > 32) throw new CannotRead('malformed');
  const bits = map.restAsBits();
  for (let i = 0; i < count; i++) {
    bits.take(KIND_BITS);
    yield [bits.take(nativeBits), bits.take(ilBits)];
  }
}

function readExtras(
  memory: RuntimeMemory,
  { patchpoint }: DotnetLayout,
  debugInfo: number,
): { rich: Uint8Array | undefined; at: number } {
  const flags = memory.u8(debugInfo);
  let at = debugInfo + 1;
  if (flags & HAS_PATCHPOINT) {
    const locals = memory.u32(at + patchpoint.locals);
    if (locals > MAX_LOCALS) throw new CannotRead('malformed');
    at += patchpoint.size + 4 * locals;
  }
  if ((flags & HAS_RICH) === 0) return { rich: undefined, at };
  const bytes = memory.u32(at);
  if (bytes > MAX_RICH_BYTES) throw new CannotRead('malformed');
  return { rich: memory.bytes(at + 4, bytes), at: at + 4 + bytes };
}

function readMap(memory: RuntimeMemory, at: number): Nibbles {
  const sizes = new Nibbles(memory.upTo(at, SIZES_BYTES));
  const mapBytes = sizes.number();
  sizes.number(); // of where variables are
  if (mapBytes > MAX_MAP_BYTES) throw new CannotRead('malformed');
  return new Nibbles(mapBytes === 0 ? new Uint8Array(1) : memory.bytes(at + sizes.bytesRead, mapBytes));
}
