/**
 * Which methods the JIT has inlined where: noted where the process was started with DOTNET_RichDebugInfo=1. Two counts, then the
 * methods as a tree (the compiled one first; each with the IL offset in its caller, its first callee, and the next callee of its
 * caller), then the map from code to places in them. All numbers are nibbles'; most are what they differ by from the one before.
 */
import { CannotRead } from '../runtime-memory.ts';
import type { Nibbles } from './nibbles.ts';

export interface MethodPlace {
  methodDesc: number;
  /** Undefined where it is not told. */
  ilOffset: number | undefined;
}

interface Inlined {
  methodDesc: number;
  /** Where it is called. */
  ilOffset: number;
  /** Index of its caller; -1: it is the compiled method. */
  caller: number;
}

const MAX_METHODS = 4096;
const MAX_PLACES = 1 << 16;
/** The first IL offset is told by what it differs from that. */
const FIRST_IL = -2;

/** The method at `offset` in the code and those that it was inlined into, the innermost first. Throws CannotRead. */
export function inlinedAt(nibbles: Nibbles, offset: number, hasCalls: boolean): MethodPlace[] {
  const [methods, places] = [nibbles.number(), nibbles.number()];
  if (methods === 0 || methods > MAX_METHODS || places > MAX_PLACES) throw new CannotRead('malformed');
  const tree = readTree(nibbles, methods);
  const place = findPlace(nibbles, places, offset);
  const found: MethodPlace[] = [];
  let { method } = place;
  let ilOffset: number | undefined = place.ilOffset;
  while (method >= 0 && found.length < methods) {
    const inlined = tree[method];
    if (!inlined) throw new CannotRead('malformed');
    found.push({ methodDesc: inlined.methodDesc, ilOffset });
    method = inlined.caller;
    ilOffset = hasCalls ? inlined.ilOffset : undefined;
  }
  return found;
}

function readTree(nibbles: Nibbles, count: number): Inlined[] {
  const methods: Inlined[] = [];
  const links: { first: number; next: number }[] = [];
  let [ilOffset, first, next] = [FIRST_IL, 0, 0];
  for (let i = 0; i < count; i++) {
    const methodDesc = nibbles.word();
    ilOffset += nibbles.signed();
    first += nibbles.signed();
    next += nibbles.signed();
    methods.push({ methodDesc, ilOffset, caller: -1 });
    links.push({ first, next });
  }
  for (let caller = 0; caller < count; caller++) {
    let callee = links[caller]!.first;
    // one that has a caller already is in a circle
    while (callee > 0 && callee < count && methods[callee]!.caller < 0) {
      methods[callee]!.caller = caller;
      callee = links[callee]!.next;
    }
  }
  return methods;
}

/** The last place at or before the offset that is one of IL. */
function findPlace(nibbles: Nibbles, count: number, offset: number): { method: number; ilOffset: number } {
  let found = { method: 0, ilOffset: 0 };
  let [native, method, ilOffset] = [0, 0, FIRST_IL];
  for (let i = 0; i < count; i++) {
    native += nibbles.number();
    method += nibbles.signed();
    ilOffset += nibbles.signed();
    nibbles.number(); // what kind of place it is
    if (native > offset) break;
    if (ilOffset >= 0) found = { method, ilOffset };
  }
  return found;
}
