/**
 * What V8 inlined into optimized WebAssembly code. A WasmCode owns one block of bytes, in which tables stand behind one
 * another: of trapping instructions, relocations, positions, and inlinings (V8's src/wasm/wasm-code-manager.h, 13.6 and
 * 14.6). The position of an instruction names an inlining, which has the position of the call that was inlined.
 */
import { type Heap, wordAt } from './heap.ts';
import { decodePosition, findPosition } from './positions.ts';

const MAX_TABLE_BYTES = 1 << 20;
const MAX_INLINED = 64;
/** {i32 function, u8 whether it was a tail call, u64 position of the call}, without padding. */
const INLINING_BYTES = 13;
const TAIL_CALL_AT = 4;
const CALL_AT = 5;

/** Indices of the functions inlined at an offset of code, the innermost first. `code`: the bytes of its WasmCode. */
export function inlinedAt(heap: Heap, code: DataView, offset: number): number[] {
  const { positionFlags, wasm } = heap.layout;
  if (!wasm.hasInlinings) return [];
  const metadata = wordAt(code, wasm.codeSize - 8);
  const sizeAt = (at: number): number => code.getUint32(at, true);
  const before = sizeAt(wasm.codeIndex - 4) + sizeAt(wasm.codeSize + 4);
  const [positions, inlinings] = [sizeAt(wasm.codeSize + 8), sizeAt(wasm.codeSize + 12)];
  if (inlinings < INLINING_BYTES || positions + inlinings > MAX_TABLE_BYTES) return [];
  const tables = heap.bytes(metadata + before, positions + inlinings);
  if (!tables) return [];
  const table = new Uint8Array(tables.buffer, tables.byteOffset, positions);
  const { inlining } = findPosition(table, offset, positionFlags);
  return functionsOf(new DataView(tables.buffer, tables.byteOffset + positions, inlinings), inlining);
}

/** From an inlining outwards; what was left by a tail call is on no stack. */
function functionsOf(inlinings: DataView, innermost: number): number[] {
  const functions: number[] = [];
  let wasLeft = false;
  for (let id = innermost; id >= 0 && functions.length < MAX_INLINED; ) {
    const at = id * INLINING_BYTES;
    if (at + INLINING_BYTES > inlinings.byteLength) return [];
    if (!wasLeft) functions.push(inlinings.getInt32(at, true));
    wasLeft = inlinings.getUint8(at + TAIL_CALL_AT) !== 0;
    const caller = decodePosition(wordAt(inlinings, at + CALL_AT)).inlining;
    // a caller was always entered into the list before what was inlined into it
    if (caller >= id) return [];
    id = caller;
  }
  return functions;
}
