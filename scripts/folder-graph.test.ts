import { expect, it } from 'vitest';
import { FolderGraph, type Import } from './folder-graph.ts';
import { drawMatrix } from './folder-matrix.ts';

const imports = (...pairs: string[]): Import[] =>
  pairs.map((pair) => {
    const [from = '', to = ''] = pair.split(' ');
    return { from, to, isType: false };
  });

it('orders importers before what they import, and keeps sub-folders together', () => {
  const graph = new FolderGraph(
    imports(
      'agent/a.ts agent/x/b.ts',
      'agent/a.ts agent/b/c.ts',
      'agent/x/b.ts agent/x/y/d.ts',
      'agent/b/c.ts common/e.ts',
    ),
  );
  expect(graph.inOrder()).toEqual(['agent', 'agent/b', 'agent/x', 'agent/x/y', 'common']);
  expect(graph.knots().every((knot) => knot.length === 1)).toBe(true);
});

it('finds circles of any length, also of a folder and its sub-folder', () => {
  const graph = new FolderGraph(
    imports(
      'a/1.ts b/1.ts',
      'b/2.ts c/1.ts',
      'c/2.ts a/2.ts',
      'c/1.ts d/1.ts',
      'd/1.ts d/e/1.ts',
      'd/e/2.ts d/2.ts',
    ),
  );
  const knots = graph.knots().filter((knot) => knot.length > 1);
  expect(knots.map((knot) => [...knot].sort())).toEqual([
    ['a', 'b', 'c'],
    ['d', 'd/e'],
  ]);
});

it('imports within a folder are not edges', () => {
  expect(new FolderGraph(imports('a/1.ts a/2.ts')).edges).toEqual([]);
});

it('marks what closes a circle red, left of the diagonal, and nothing else', () => {
  const open = drawMatrix(new FolderGraph(imports('a/1.ts b/1.ts', 'b/1.ts c/1.ts')), 'open');
  expect(open).not.toContain('class="back"');
  const closed = drawMatrix(new FolderGraph(imports('a/1.ts b/1.ts', 'b/1.ts a/1.ts')), 'closed');
  expect(closed.match(/class="back"/g)).toHaveLength(1);
});

it('escapes what files are called', () => {
  expect(drawMatrix(new FolderGraph(imports('a/<1>.ts b/&.ts')), '<t>')).not.toMatch(/<1>|&\.ts|<t>/);
});
