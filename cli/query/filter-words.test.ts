import { expect, it } from 'vitest';
import { parseFilter } from '../../common/profile/filters/filter.ts';
import { whereOf } from './filter-words.ts';

it.each([
  [['process=node'], 'process=node'],
  [['process=node', 'thread~^worker'], 'process=node thread~^worker'],
  [['process=node thread~^worker'], 'process=node thread~^worker'],
  [['thread=my worker,other'], 'thread="my worker","other"'],
  [['thread="my worker"'], 'thread="my worker"'],
  [['frame=operator new(unsigned long)'], 'frame="operator new(unsigned long)"'],
])('%j is a filter', (words, where) => {
  expect(whereOf(undefined, words)).toBe(where);
  expect(parseFilter(where)).not.toEqual([]);
  expect(whereOf('cpu=0', words)).toBe(`cpu=0 ${where}`);
});

it('of no words is that of the flag', () => {
  expect(whereOf('cpu=0', [])).toBe('cpu=0');
  expect(whereOf(undefined, [])).toBeUndefined();
});

it.each([
  [
    'node',
    '"node" is not a filter: write KEY=VALUE, such as process=node (everyframe query labels lists the keys)',
  ],
  [
    'a b',
    '"a b" is not a filter: write KEY=VALUE, such as process=node (everyframe query labels lists the keys)',
  ],
  ['20', '"20" is not a filter: is --limit 20 meant, or pid=20?'],
  ['5m', '"5m" is not a filter: is --range 5m meant?'],
])('says what is meant by %s', (word, message) => {
  expect(() => whereOf(undefined, [word])).toThrow(message);
});
