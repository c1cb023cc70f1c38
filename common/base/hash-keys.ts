/**
 * Odd 32-bit multipliers for hashes of numbers that strangers choose: drawn anew in each process, so that nobody can send
 * ten thousand pairs that all fall into one slot of a table.
 */
export const HASH_KEYS = Array.from(crypto.getRandomValues(new Int32Array(4)), (key) => key | 1) as [
  number,
  number,
  number,
  number,
];
