import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { StackCounts } from '../../store/store.ts';
import { FrameTable } from '../../store/trees/frame-table.ts';
import { StackTree } from '../../store/trees/stack-tree.ts';
import { buildFlameTree, type FlameTree } from './flame-tree.ts';

type Counted = readonly [path: string, count: number];

function partOf(stacks: readonly Counted[]): StackCounts {
  const table = new FrameTable();
  const tree = new StackTree();
  const counts: number[] = [0];
  for (const [path, count] of stacks) {
    let node = 0;
    for (const name of path.split(';')) {
      node = tree.child(node, table.intern({ name, file: '', mapping: '', kind: 'native' }));
      counts[node] ??= 0;
    }
    counts[node]! += count;
  }
  return {
    frames: table.frames,
    parents: tree.parents.slice(0, tree.size),
    nodeFrames: tree.frames.slice(0, tree.size),
    selfCounts: Float64Array.from(counts),
  };
}

/** One line a node: indented by depth, name, total, self. */
function format(tree: FlameTree): string[] {
  const totals = totalsOf(tree);
  const children = new Map<number, number[]>();
  for (const [node, parent] of tree.parents.entries()) {
    if (node > 0) children.set(parent, [...(children.get(parent) ?? []), node]);
  }
  const lines: string[] = [];
  const visit = (node: number, indent: string): void => {
    const name = tree.frames[tree.nodeFrames[node]!]!.name;
    lines.push(`${indent}${name} ${totals[node]} ${tree.selfCounts[node]}`);
    for (const child of children.get(node) ?? []) visit(child, `${indent}  `);
  };
  visit(0, '');
  return lines;
}

function totalsOf({ parents, selfCounts }: FlameTree): Float64Array {
  const totals = selfCounts.slice();
  for (let node = totals.length - 1; node > 0; node--) totals[parents[node]!]! += totals[node]!;
  return totals;
}

/** Nodes of the full tree that hang below one that was kept, and were not. */
function countCutOff(full: FlameTree, tree: FlameTree): number {
  const pathsOf = (of: FlameTree): string[] => {
    const paths = [''];
    for (let node = 1; node < of.parents.length; node++)
      paths.push(`${paths[of.parents[node]!]!};${of.frames[of.nodeFrames[node]!]!.name}`);
    return paths;
  };
  const kept = new Set(pathsOf(tree));
  return pathsOf(full).filter((path) => !kept.has(path) && kept.has(path.slice(0, path.lastIndexOf(';'))))
    .length;
}

const NO_LIMITS = { minFraction: 0, maxNodes: 1e6 };

describe('buildFlameTree', () => {
  it('merges parts and orders children by name', () => {
    const parts = [
      partOf([
        ['sh;main;b', 2],
        ['sh;main', 1],
      ]),
      partOf([
        ['sh;main;a', 3],
        ['cc;x', 4],
      ]),
    ];
    expect(format(buildFlameTree(parts, NO_LIMITS))).toEqual([
      'all 10 0',
      '  cc 4 0',
      '    x 4 4',
      '  sh 6 0',
      '    main 6 1',
      '      a 3 3',
      '      b 2 2',
    ]);
  });

  it('folds what is small into a remainder beside it', () => {
    const part = partOf([
      ['p;big', 990],
      ['p;s1', 4],
      ['p;s2;t', 5],
      ['q', 1],
    ]);
    const tree = buildFlameTree([part], { minFraction: 0.01, maxNodes: 100 });
    expect(format(tree)).toEqual([
      'all 1000 0',
      '  p 999 0',
      '    big 990 990',
      '    (other) 9 9',
      '  (other) 1 1',
    ]);
    // without the one below s2
    expect(tree.foldedNodes).toBe(3);
    expect(tree.foldedSamples).toBe(10);
  });

  it('keeps the largest nodes where there are too many', () => {
    const part = partOf(Array.from({ length: 50 }, (_, i) => [`p;f${i}`, i + 1] as const));
    const tree = buildFlameTree([part], { minFraction: 0, maxNodes: 5 });
    expect(format(tree).slice(2)).toEqual([
      '    f47 48 48',
      '    f48 49 49',
      '    f49 50 50',
      '    (other) 1128 1128',
    ]);
  });

  it('has a root even without samples', () => {
    expect(format(buildFlameTree([]))).toEqual(['all 0 0']);
  });

  it('conserves samples under any limits, with parents first and rows together', () => {
    const path = fc
      .array(fc.constantFrom('a', 'b', 'c', 'd'), { minLength: 1, maxLength: 7 })
      .map((f) => f.join(';'));
    const part = fc.array(fc.tuple(path, fc.integer({ min: 1, max: 1000 })), { maxLength: 40 }).map(partOf);
    const limits = fc.record({
      minFraction: fc.double({ min: 0, max: 0.3, noNaN: true }),
      maxNodes: fc.nat(30),
    });
    fc.assert(
      fc.property(fc.array(part, { maxLength: 4 }), limits, (parts, limit) => {
        const tree = buildFlameTree(parts, limit);
        const samples = parts.reduce((sum, { selfCounts }) => sum + selfCounts.reduce((a, b) => a + b, 0), 0);
        expect(tree.selfCounts.reduce((a, b) => a + b, 0)).toBe(samples);
        const others = tree.nodeFrames.filter((frame) => tree.frames[frame]!.kind === 'other').length;
        expect(tree.parents.length - others).toBeLessThanOrEqual(Math.max(1, limit.maxNodes));
        const full = buildFlameTree(parts, NO_LIMITS);
        expect(tree.foldedNodes).toBe(countCutOff(full, tree));
        for (let node = 1; node < tree.parents.length; node++) {
          expect(tree.parents[node]).toBeLessThan(node);
          if (node > 1) expect(tree.parents[node]).toBeGreaterThanOrEqual(tree.parents[node - 1]!);
        }
      }),
      { numRuns: 150 },
    );
  });
});
