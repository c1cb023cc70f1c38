import { expect, test } from 'vitest';
import { NameCache, type SampledFunction } from '../contract.ts';
import { layoutOf } from './layout.ts';
import { php } from './plugin.ts';

const gone = { read: () => undefined };
const closure = (firstLine: number, cookie: number): SampledFunction => ({
  operand: 0x7000,
  cookie,
  kind: 2,
  className: '',
  name: '{closure}',
  file: '/app/a.php',
  firstLine,
  lastLine: firstLine + 2,
});
const nameOf = (cache: NameCache, cookie: number) =>
  php.nameFrame({ operand: 0x7000, low: cookie, high: 0 }, layoutOf(8, 2), gone, cache);

test('functions that stand at one address by turns keep their names when they are gone', () => {
  const cache = new NameCache();
  php.takeFunction!(closure(10, 1), cache);
  php.takeFunction!(closure(20, 2), cache);
  expect(nameOf(cache, 1)).toMatchObject({ name: '{closure:10}', file: '/app/a.php', line: 10 });
  expect(nameOf(cache, 2)).toMatchObject({ name: '{closure:20}', startLine: 20 });
  expect(nameOf(cache, 3)).toBe('unreadable');
});

test('a process that makes functions endlessly at one address does not fill the cache', () => {
  const cache = new NameCache();
  for (let i = 0; i < 10_000; i++) php.takeFunction!(closure(10, i), cache);
  expect(cache.bytes).toBeLessThan(10_000);
  cache.clear();
  expect(cache.bytes).toBe(0);
});
