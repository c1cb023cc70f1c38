import { expect, it } from 'vitest';
import { cookieOf32Bits, cookieOfBits } from './cookie.ts';

// by the formulas of ebpf/cookie.h, computed with other arithmetic than this: Lua and LuaJIT take 4 bits, Perl 5, Ruby 8, the others 32
it('is what the unwinders compute', () => {
  const words = [0x7f1234567890n, 5n];
  expect([4, 5, 8].map((bits) => cookieOfBits(bits, words))).toEqual([0x4, 0x9, 0x48]);
  expect(cookieOfBits(8, [1n << 40n, 7n])).toBe(13);
  expect(cookieOf32Bits([1n, 2n ** 64n - 1n, 0x7f0012345678n, 42n])).toBe(0x4cdbe72);
});
