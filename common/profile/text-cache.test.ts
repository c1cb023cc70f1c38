import { expect, it } from 'vitest';
import { TextCache } from './text-cache.ts';

const read = (cache: TextCache, text: string): string => {
  const bytes = Buffer.from(`<${text}>`);
  return cache.read(bytes, 1, bytes.length - 1);
};

it('reads any text', () => {
  const cache = new TextCache();
  for (const text of ['', 'main', 'naïve', '世界', 'x'.repeat(5000), 'main', 'naïve'])
    expect(read(cache, text)).toBe(text);
});

it('reads texts right before and after it was full', () => {
  const cache = new TextCache();
  const texts = Array.from({ length: 12_000 }, (_, i) => `${i} ${'x'.repeat(1000)}`);
  for (let round = 0; round < 2; round++)
    for (const text of texts) expect(read(cache, text) === text).toBe(true);
});
