import { expect, test } from 'vitest';
import { layoutOf } from './layout.ts';

test.each([
  ['1.15.15', { curg: 192, labels: 344, isMap: true }],
  ['1.19.8', { labels: 360, goid: 152, isMap: true }],
  ['1.23.12', { labels: 352, goid: 160, isMap: true }],
  ['1.24.9', { curg: 192, isMap: false }],
  ['1.27rc1', { curg: 184, labels: 352, isMap: false }],
  ['1.31.0', { curg: 184, labels: 352, isMap: false }],
])('members of Go %s', (version, expected) => {
  expect(layoutOf(version)).toMatchObject(expected);
});

test('other Gos have none that is known', () => {
  expect(layoutOf('1.12.1')).toBeUndefined();
  expect(layoutOf('2.0')).toBeUndefined();
});
