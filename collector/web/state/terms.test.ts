import { describe, expect, it } from 'vitest';
import { toggleValue, valuesOf, withoutKey } from './terms.ts';

describe('toggleValue', () => {
  it.each([
    ['', 'process', '=', 'node', 'process=node'],
    ['process=node', 'process', '=', 'sh', 'process=node,sh'],
    ['process=node,sh cpu=0', 'process', '=', 'node', 'cpu=0 process=sh'],
    ['process=node', 'process', '=', 'node', ''],
    ['process=node,sh', 'process', '!=', 'node', 'process=sh process!=node'],
    ['thread~^w', 'thread', '=', 'a b', 'thread~^w thread="a b"'],
    ['service=""', 'service', '=', '', ''],
  ] as const)('changes %s', (where, key, operator, value, changed) => {
    expect(toggleValue(where, key, operator, value)).toBe(changed);
  });

  it('starts anew from a filter that can not be read', () => {
    expect(toggleValue('what?', 'cpu', '=', '1')).toBe('cpu=1');
  });
});

describe('a filter', () => {
  it('says what it says of a label, and what it says without it', () => {
    const where = 'process=a,b host!=c process.executable.name=d';
    expect(valuesOf(where, 'process', '=')).toEqual(['a', 'b', 'd']);
    expect(withoutKey(where, 'process')).toBe('host!=c');
  });
});
