/**
 * Objects may follow each other at one address. What tells them apart is a hash of a few of their words, which the BPF unwinder
 * takes with the frame (ebpf/cookie.h), and which is computed here again when the frame is named. Frames have room for some of its
 * bits.
 */

const MASK = (1n << 64n) - 1n;

export function hashOfWords(words: readonly bigint[]): bigint {
  let hash = 0x9e3779b97f4a7c15n;
  for (const word of words) {
    hash = ((hash ^ word) * 0xff51afd7ed558ccdn) & MASK;
    hash ^= hash >> 32n;
  }
  return hash;
}

/** Its lower half. */
export const cookieOf32Bits = (words: readonly bigint[]): number => Number(hashOfWords(words) & 0xffff_ffffn);

/** Its uppermost bits. */
export const cookieOfBits = (bits: number, words: readonly bigint[]): number =>
  Number(hashOfWords(words) >> BigInt(64 - bits));
