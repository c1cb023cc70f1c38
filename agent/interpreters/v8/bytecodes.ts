/** Steps through Ignition's bytecodes, whose sizes V8 has in a table. Prefixes scale the operands of the next one. */

const WIDE = [0, 2];
const EXTRA_WIDE = [1, 3];

/**
 * Offset of the bytecode with an index. `sizes`: V8's kBytecodeSizes, a row for operands of single, double and
 * quadruple width, a byte for each bytecode.
 */
export function offsetOfBytecode(bytecodes: Uint8Array, sizes: Uint8Array, index: number): number {
  const count = Math.floor(sizes.length / 3);
  let at = 0;
  for (let i = 0; i < index && at < bytecodes.length; i++) {
    const first = bytecodes[at]!;
    const row = WIDE.includes(first) ? 1 : EXTRA_WIDE.includes(first) ? 2 : 0;
    const opcode = row > 0 ? (bytecodes[at + 1] ?? 0) : first;
    const size = opcode < count ? sizes[row * count + opcode]! : 0;
    at += Math.max(size, 1) + (row > 0 ? 1 : 0);
  }
  return at;
}
