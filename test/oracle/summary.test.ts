import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { describeGroups, newGroup, updatePage } from './summary.ts';

const group = (name: string, files: number) => ({ ...newGroup(name), files, coveredBytes: 200 });
const both = describeGroups([group('one', 1), group('two', 2)]);

it('replaces what a page says of one set of files', () => {
  expect(updatePage(both, group('two', 3))).toBe(describeGroups([group('one', 1), group('two', 3)]));
  expect(updatePage(both, group('one', 4))).toBe(describeGroups([group('one', 4), group('two', 2)]));
});

it('adds what it does not have yet', () => {
  const three = { ...group('three', 3), unsupportedCfi: new Map([['CFA by expression', 5]]) };
  expect(updatePage(both, three)).toBe(describeGroups([group('one', 1), group('two', 2), three]));
});

it('reads the page that is there', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/oracle.md'), 'utf8');
  const added = updatePage(page, group('another', 3));
  expect(added.split('\n').filter((line) => !/another/.test(line))).toEqual(
    expect.arrayContaining(page.trimEnd().split('\n')),
  );
});
