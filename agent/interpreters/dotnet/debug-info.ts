/**
 * What the JIT notes for debuggers of a method that it has compiled: which code is of which IL. Source: dotnet/runtime,
 * docs/design/datacontracts/DebugInfo.md. A flag byte and what it announces (slots of a method that may be replaced while it
 * runs, the tree of inlined methods) stand first, then two sizes, then the map, all in nibbles of three bits.
 */
import { CannotRead, type ClrMemory } from './clr-memory.ts';
import type { DotnetLayout } from './layout.ts';

const HAS_PATCHPOINT = 1;
const HAS_RICH = 2;
const MAX_LOCALS = 1 << 16;
const MAX_RICH_BYTES = 16 << 20;
/** Two sizes of up to 11 nibbles. */
const SIZES_BYTES = 12;
const MAX_MAP_BYTES = 256 << 10;
const MAX_NIBBLES = 11;
/** IL offsets are more by that: the lowest ones say that the code is the prologue, the epilogue, or of no IL. */
const IL_BIAS = 3;

/** Offset in the method's IL of the code at `offset`; 0 before the first that has one. Throws CannotRead. */
export function ilOffsetOf(
  memory: ClrMemory,
  layout: DotnetLayout,
  { debugInfo, offset }: { debugInfo: number; offset: number },
): number {
  const nibbles = readMap(memory, skipExtras(memory, layout, debugInfo));
  let [native, found] = [0, 0];
  for (let left = nibbles.number(); left > 0; left--) {
    native += nibbles.number();
    const il = nibbles.number() - IL_BIAS;
    nibbles.number(); // what kind of place it is
    if (native > offset) break;
    if (il >= 0) found = il;
  }
  return found;
}

function skipExtras(memory: ClrMemory, { patchpoint }: DotnetLayout, debugInfo: number): number {
  const flags = memory.u8(debugInfo);
  let at = debugInfo + 1;
  if (flags & HAS_PATCHPOINT) {
    const locals = memory.u32(at + patchpoint.locals);
    if (locals > MAX_LOCALS) throw new CannotRead('malformed');
    at += patchpoint.size + 4 * locals;
  }
  if (flags & HAS_RICH) {
    const bytes = memory.u32(at);
    if (bytes > MAX_RICH_BYTES) throw new CannotRead('malformed');
    at += 4 + bytes;
  }
  return at;
}

function readMap(memory: ClrMemory, at: number): Nibbles {
  const sizes = new Nibbles(memory.upTo(at, SIZES_BYTES));
  const mapBytes = sizes.number();
  sizes.number(); // of where variables are
  if (mapBytes > MAX_MAP_BYTES) throw new CannotRead('malformed');
  return new Nibbles(mapBytes === 0 ? new Uint8Array(1) : memory.bytes(at + sizes.bytesRead, mapBytes));
}

/** Numbers in nibbles: three bits each, the highest ones first; the fourth says that there are more. */
export class Nibbles {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get bytesRead(): number {
    return (this.#at + 1) >> 1;
  }

  /** Throws CannotRead behind the end. */
  number(): number {
    let value = 0;
    for (let i = 0; i < MAX_NIBBLES; i++) {
      const byte = this.#bytes[this.#at >> 1];
      if (byte === undefined) break;
      const nibble = this.#at++ % 2 === 0 ? byte & 15 : byte >> 4;
      value = value * 8 + (nibble & 7);
      if (nibble < 8) return value;
    }
    throw new CannotRead('malformed');
  }
}
