/**
 * V8's table of bytecode sizes (Bytecodes::kBytecodeSizes), found by what it says: from V8 13 on it is not a public symbol
 * any more, and packagers strip the others. It has a row for operands of single, double and quadruple width, and begins
 * in every version with the prefixes and with DebugBreak0 to DebugBreak3, which have as many operands as bytes.
 */

const PREFIXES = [1, 1, 1, 1];
/** Of DebugBreak0 to DebugBreak3: the opcode and its operands, by row. */
const BREAKS = [
  [1, 2, 3, 4],
  [1, 3, 5, 7],
  [1, 5, 9, 13],
];
/** V8 9.4 has 197 bytecodes, 14.6 has 212; they are counted in a byte. */
const MIN_COUNT = 128;
const MAX_COUNT = 256;
const MAX_SIZE = 64;
const FIRST = Buffer.from([...PREFIXES, ...BREAKS[0]!]);

/** Undefined where there is none. `data`: constants of the file. */
export function findBytecodeSizes(data: Buffer): Uint8Array | undefined {
  for (let at = data.indexOf(FIRST); at >= 0; at = data.indexOf(FIRST, at + 1)) {
    for (let count = MIN_COUNT; count <= MAX_COUNT && at + 3 * count <= data.length; count++) {
      const table = data.subarray(at, at + 3 * count);
      if (isTable(table, count)) return Uint8Array.from(table);
    }
  }
  return undefined;
}

function isTable(table: Buffer, count: number): boolean {
  const begins = BREAKS.every((sizes, row) =>
    [...PREFIXES, ...sizes].every((size, i) => table[row * count + i] === size),
  );
  if (!begins) return false;
  for (let i = 0; i < count; i++) {
    const [single, double, quadruple] = [table[i]!, table[count + i]!, table[2 * count + i]!];
    // each operand that scales has 1, 2, and 4 bytes
    if (single === 0 || double < single || quadruple > MAX_SIZE) return false;
    if (quadruple - single !== 3 * (double - single)) return false;
  }
  return true;
}
