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

it('is not slowed down by texts that were made to have one hash', () => {
  // flips of the highest bit go through a multiplication as they are, so the next word can take them back
  const block = (isFlipped: boolean): number[] =>
    isFlipped ? [0, 0, 0, 0x80, 0, 0, 1, 0x80] : Array(8).fill(0);
  const cache = new TextCache();
  for (let i = 0; i < 1024; i++) {
    const bytes = Buffer.from(Array.from({ length: 10 }, (_, bit) => block(((i >> bit) & 1) === 1)).flat());
    expect(cache.read(bytes, 0, bytes.length)).toBe(bytes.toString());
  }
  expect(cache.count).toBeLessThan(100);
});
