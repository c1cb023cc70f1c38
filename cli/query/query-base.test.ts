import { expect, it } from 'vitest';
import { baseOf } from './query-base.ts';

const NOW = Date.UTC(2026, 0, 31, 12);

it('is the time before, as long as what is asked for', () => {
  expect(baseOf({}, NOW)).toMatchObject({ base_from: NOW - 30 * 60_000 + 1, base_to: NOW - 15 * 60_000 + 1 });
  expect(baseOf({ from: '-10m', to: '-5m', where: 'cpu=0' }, NOW)).toEqual({
    ...{ base_from: NOW - 15 * 60_000, base_to: NOW - 10 * 60_000, base_where: 'cpu=0' },
  });
});

it('is the same time where filters are compared, and what was given otherwise', () => {
  expect(baseOf({ range: '5m', where: 'host=a', baseWhere: 'host=b' }, NOW)).toEqual({
    ...{ base_from: undefined, base_to: undefined, base_range: '5m', base_where: 'host=b' },
  });
  expect(baseOf({ baseRange: '7d', where: 'host=a' }, NOW)).toMatchObject({
    base_range: '7d',
    base_where: 'host=a',
  });
});

it('says what it can not be', () => {
  expect(() => baseOf({ range: 'all' }, NOW)).toThrow('before all of the time');
  expect(() => baseOf({ from: '-5m', to: '-10m' }, NOW)).toThrow('from (-5m) must be before to (-10m)');
  expect(() => baseOf({ from: '-3m', range: '5m' }, NOW)).toThrow('give one of them');
  expect(() => baseOf({ range: 'soon' }, NOW)).toThrow('range is "soon"');
});
