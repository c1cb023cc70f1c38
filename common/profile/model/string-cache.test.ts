import { expect, it } from 'vitest';
import { LOOSE_STRINGS } from './frame-columns.ts';
import { StringCache } from './string-cache.ts';

const read = (cache: StringCache, text: string): string => {
  const bytes = Buffer.from(`<${text}>`);
  return cache.read(bytes, 1, bytes.length - 1);
};

it('reads any text', () => {
  const cache = new StringCache();
  for (const text of ['', 'main', 'naïve', '世界', 'x'.repeat(5000), 'main', 'naïve'])
    expect(read(cache, text)).toBe(text);
});

it('reads texts right before and after it was full', () => {
  const cache = new StringCache();
  const texts = Array.from({ length: 12_000 }, (_, i) => `${i} ${'x'.repeat(1000)}`);
  for (let round = 0; round < 2; round++)
    for (const text of texts) expect(read(cache, text) === text).toBe(true);
});

it('is not slowed down by texts that were made to have one hash', () => {
  // flips of the highest bit go through a multiplication as they are, so the next word can take them back
  const block = (isFlipped: boolean): number[] =>
    isFlipped ? [0, 0, 0, 0x80, 0, 0, 1, 0x80] : Array(8).fill(0);
  const cache = new StringCache();
  for (let i = 0; i < 1024; i++) {
    const bytes = Buffer.from(Array.from({ length: 10 }, (_, bit) => block(((i >> bit) & 1) === 1)).flat());
    expect(cache.read(bytes, 0, bytes.length)).toBe(bytes.toString());
  }
  expect(cache.count).toBeLessThan(100);
});

it('gives a text one number until it forgets all, and those that it does not keep one until the next request', () => {
  const cache = new StringCache();
  const idOf = (text: string): number => cache.idOf(Buffer.from(text), 0, Buffer.byteLength(text));
  const long = 'y'.repeat(5000);
  const main = idOf('main');
  expect([idOf(''), cache.string(0)]).toEqual([0, '']);
  const loose = idOf(long);
  expect([loose >= LOOSE_STRINGS, cache.string(loose)]).toEqual([true, long]);
  cache.beginRequest();
  expect([idOf('main'), cache.string(main), cache.generation]).toEqual([main, 'main', 0]);
  for (let i = 0; i < 10_000; i++) idOf(`${i} ${'x'.repeat(1000)}`);
  expect([idOf('main'), cache.string(main), cache.generation]).toEqual([main, 'main', 0]);
  cache.beginRequest();
  expect([cache.generation, cache.count]).toEqual([1, 1]);
  expect(cache.string(idOf('other'))).toBe('other');
});
