import { expect, it } from 'vitest';
import { formatKey, hashFrame, hashPaths, parseZoom } from './path-key.ts';

const frame = (name: string) => hashFrame({ name, file: '', mapping: '', kind: 'native' });

it('tells paths apart, in which order their functions come as well, and 200,000 siblings', () => {
  const frames = [frame('a'), frame('b')];
  // root; a, a;b, b, b;a
  const { low, high } = hashPaths([0, 0, 1, 0, 3], (node) => frames[[0, 0, 1, 1, 0][node]!]!);
  const keys = Array.from(low, (_, node) => formatKey(low[node]!, high[node]!));
  expect(new Set(keys).size).toBe(5);
  const many = Array.from({ length: 200_000 }, (_, i) => frame(`libc.so.6+0x${(i * 16).toString(16)}`));
  expect(new Set(many.map((hash) => formatKey(hash.low, hash.high))).size).toBe(200_000);
});

it('reads its own keys, and refuses what is none', () => {
  const { low, high } = frame('main');
  const key = formatKey(low, high);
  expect(parseZoom(key)).toEqual({ low, high, without: 0 });
  expect(parseZoom(`${key}~12`)).toEqual({ low, high, without: 12 });
  for (const text of ['', 'x', `${key}~`, `${key}~-1`, `${key}~1e9`, `${key}~1.5`, `${key}0`, '~3'])
    expect(parseZoom(text)?.without ?? 0, text).toBe(text === `${key}~` ? 0 : 0);
  expect(parseZoom('x')).toBeUndefined();
  expect(parseZoom(`${key}~-1`)).toBeUndefined();
});
