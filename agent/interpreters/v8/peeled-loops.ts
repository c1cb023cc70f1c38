/**
 * Positions in loops that Maglev compiled twice. It peels the first iteration off a small innermost loop: the loop's
 * bytecode is compiled once for that iteration and once more for all others. From V8 12.5 on (Node 24 to 26 were
 * looked at) the second time leaves all positions of that function where the first time ended, at the jump back: each
 * call in the loop seems to stand where the loop begins. V8's own profiler shows the same.
 *
 * What is right in that code: to which inlining an address belongs, the order in which calls were inlined, and what
 * V8 needs to leave optimized code after a call, which says the bytecode. From that the positions of calls are found
 * again:
 *
 * - A call that was inlined: the second pass inlined the same calls in the same order as the first.
 * - Any other call: its return address is in the safepoint table.
 *
 * What is between calls keeps the position of the loop.
 *
 * A jump back is known by its position, which lies before the statement that the bytecode belongs to; no expression's
 * does. Formats: V8's src/codegen/maglev-safepoint-table.h and src/objects/deoptimization-data.h.
 */
import type { Code, Place, Places } from './code.ts';
import { type Heap, smiAt } from './heap.ts';
import type { Inlining, PositionEntry } from './positions.ts';

const MAX_SAFEPOINTS = 4096;
/** V8 stops at some ten; each is compared with all before it. */
const MAX_INLININGS = 1024;
const SAFEPOINT_HEADER = 16;
const DEOPT_HEADER_BEHIND_POSITIONS = 4;
const DEOPT_ENTRY = 3;
const ARRAY_DATA = 16;

/** The function's position tables by index of the place in {@link Places}. */
export type TableOf = (index: number) => readonly PositionEntry[];

/** Gives the places in a loop's second copy their own positions, as far as they can be known. */
export function repairPositions(
  heap: Heap,
  { code, pc }: { code: Code; pc: number },
  { places, inlinings }: Places,
  tableOf: TableOf,
): Place[] {
  return places.map((place, i) => {
    const entries = tableOf(i);
    const back = findBackJump(entries, place.offset);
    if (!back) return place;
    const inner = places[i - 1];
    const offset = inner
      ? inlinings[findFirstPass(inlinings, inner.inlining, entries)]?.caller.offset
      : findCall(heap, { code, pc }, entries);
    return offset === undefined ? place : { ...place, offset };
  });
}

/** The jump that goes back to the beginning of the loop at a position. */
export function findBackJump(entries: readonly PositionEntry[], offset: number): PositionEntry | undefined {
  let statement = -1;
  for (const entry of entries) {
    if (entry.isStatement) statement = entry.position.offset;
    else if (entry.position.offset === offset && offset >= 0 && offset < statement) return entry;
  }
  return undefined;
}

/**
 * The inlining of the first pass that an inlining of a later one repeats, -1 if none does. `entries`: the positions
 * of the function that both were inlined into.
 */
export function findFirstPass(
  inlinings: readonly Inlining[],
  index: number,
  entries: readonly PositionEntry[],
): number {
  if (index >= MAX_INLININGS) return -1;
  const { caller } = inlinings[index]!;
  const end = findBackJump(entries, caller.offset)?.code ?? 0;
  const before = entries.filter(({ code }) => code < end);
  const inLoop = new Set(before.map(({ position }) => position.offset).filter((at) => at > caller.offset));
  const first: number[] = [];
  let next = 0;
  for (let i = 0; i <= index; i++) {
    const { caller: other, literal } = inlinings[i]!;
    if (other.inlining !== caller.inlining) continue;
    if (other.offset !== caller.offset) {
      if (inLoop.has(other.offset)) first.push(i);
      continue;
    }
    const isSame = (at: number): boolean => inlinings[at]!.literal === literal;
    // past the end: the loop was compiled a third time
    const ahead = first.findIndex((at, order) => order >= next && isSame(at));
    const found = ahead >= 0 ? ahead : first.findIndex(isSame);
    if (i === index) return first[found] ?? -1;
    if (found >= 0) next = found + 1;
  }
  return -1;
}

/** Position of the call that returns behind `pc`. */
function findCall(
  heap: Heap,
  { code, pc }: { code: Code; pc: number },
  entries: readonly PositionEntry[],
): number | undefined {
  const exit = findExit(heap, code, pc + 1 - code.start);
  const bytecode = exit === undefined ? undefined : bytecodeOfExit(heap, code, exit);
  return bytecode === undefined
    ? undefined
    : entries.findLast((entry) => entry.code <= bytecode)?.position.offset;
}

/** {bytecode, translation, offset in the code} for each way out of optimized code. */
function bytecodeOfExit(heap: Heap, { deopt }: Code, exit: number): number | undefined {
  const header = heap.layout.deopt.positions + DEOPT_HEADER_BEHIND_POSITIONS;
  const index = header + exit * DEOPT_ENTRY;
  const length = heap.isA(deopt, ...heap.layout.types.fixedArrays) ? heap.arrayLength(deopt) : undefined;
  if (deopt === undefined || length === undefined || index >= length) return undefined;
  const view = heap.bytes(deopt + ARRAY_DATA + index * 8, 8);
  return view && smiAt(view, 0);
}

/**
 * The exit of the call with a return address. The table stands behind the instructions: stack slots, count, field
 * widths, tagged slots (32 bits each), then entries of return address, exit + 1, address of the exit, registers, pushed
 * registers.
 */
function findExit(heap: Heap, code: Code, returnAddress: number): number | undefined {
  const head = heap.bytes(code.start + code.size, SAFEPOINT_HEADER);
  if (!head) return undefined;
  const [count, widths] = [head.getUint32(4, true), head.getUint32(8, true)];
  const [hasExits, registers, pc, exit] = [
    widths & 1,
    (widths >> 1) & 7,
    (widths >> 4) & 7,
    (widths >> 7) & 7,
  ];
  if (!hasExits || count > MAX_SAFEPOINTS || pc === 0 || exit === 0 || pc > 4 || exit > 4) return undefined;
  const bytes = pc + exit + pc + registers + 1;
  const view = heap.bytes(code.start + code.size + SAFEPOINT_HEADER, count * bytes);
  const list = view && Buffer.from(view.buffer, view.byteOffset, view.byteLength);
  for (let i = 0; list && i < count; i++) {
    if (list.readUIntLE(i * bytes, pc) === returnAddress) return list.readUIntLE(i * bytes + pc, exit) - 1;
  }
  return undefined;
}
