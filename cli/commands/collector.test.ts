import { expect, it } from 'vitest';
import { parseSize } from './collector.ts';

it.each([
  ['512MiB', 512 * 2 ** 20],
  ['64m', 64 * 2 ** 20],
  ['1.5GB', 1.5 * 2 ** 30],
  ['33554432', 2 ** 25],
])('reads the size %s', (text, bytes) => {
  expect(parseSize(text)).toBe(bytes);
});

it.each(['', 'much', '12TB', '-1G', '1MiB'])('refuses the size "%s"', (text) => {
  expect(() => parseSize(text)).toThrow(/such as 512MiB|at least 16MiB/);
});
