import { describe, expect, it } from 'vitest';
import { listSourceRows, nextWithSamples } from './source-rows.ts';

const counts = [
  { line: 11, function: 'a', self: 1, total: 2 },
  { line: 13, function: 'b', self: 0, total: 5 },
  { line: 99, function: 'b', self: 0, total: 1 },
];
const text = { path: '/a.py', modifiedMs: 0, lineCount: 50, firstLine: 10, lines: ['x', 'y', 'z', 'w'] };

describe('rows of a source file', () => {
  it('are the lines of its text, with their samples', () => {
    const rows = listSourceRows({ counts, text });
    expect(rows.map((row) => `${row.line} ${row.text} ${row.function} ${row.self}/${row.total}`)).toEqual([
      '10 x  0/0',
      '11 y a 1/2',
      '12 z  0/0',
      '13 w b 0/5',
    ]);
    expect([0, 1, 3].map((at) => nextWithSamples(rows, at, 1))).toEqual([1, 3, 3]);
    expect([3, 1, 0].map((at) => nextWithSamples(rows, at, -1))).toEqual([1, 1, 0]);
  });

  it('are the lines with samples where there is no text', () => {
    expect(listSourceRows({ counts }).map(({ line, text: shown }) => [line, shown])).toEqual([
      [11, 'a'],
      [13, 'b'],
      [99, 'b'],
    ]);
  });
});
