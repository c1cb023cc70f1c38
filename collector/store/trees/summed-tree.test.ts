import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Frame, StackCounts } from '../store.ts';
import { OTHER } from './frames.ts';
import { sumSubtrees } from './sum-subtrees.ts';
import { LEAST_EVENTS, type SummedTree, stacksOf, sumPart } from './summed-tree.ts';

const frames = (count: number): Frame[] =>
  Array.from({ length: count }, (_, i) => ({ name: `f${i}`, file: '', mapping: '', kind: 'native' }));

/** Events of each path from the root, whatever the nodes are called. */
function countPaths({ parents, nodeFrames, selfCounts, frames }: StackCounts): Map<string, number> {
  const paths = [''];
  const counts = new Map<string, number>();
  const totals = sumSubtrees(parents, selfCounts);
  for (let node = 1; node < parents.length; node++) {
    paths[node] = `${paths[parents[node]!]};${frames[nodeFrames[node]!]!.name}`;
    if (totals[node]! > 0) counts.set(paths[node]!, (counts.get(paths[node]!) ?? 0) + totals[node]!);
  }
  return counts;
}

/** As much of a tree as is read for boxes of so many events. */
function readFrom({ parents, functions, totals, selfCounts }: SummedTree, minimum: number): SummedTree {
  const wanted = (_: number, node: number): boolean => parents[node] === 0 || totals[node]! >= minimum;
  const length = parents.filter(wanted).length;
  expect([...parents.keys()].filter((node) => wanted(0, node))).toEqual([...Array(length).keys()]);
  return {
    parents: parents.subarray(0, length),
    functions: functions.subarray(0, length),
    totals: totals.subarray(0, length),
    selfCounts: selfCounts.subarray(0, length),
  };
}

it('has exact counts for each box that is read, and all other events above as "(other)"', () => {
  const trees = fc.array(fc.record({ parent: fc.nat(), frame: fc.nat(4), self: fc.nat(5) }), {
    minLength: 1,
    maxLength: 60,
  });
  fc.assert(
    fc.property(trees, fc.integer({ min: LEAST_EVENTS, max: 20 }), (nodes, minimum) => {
      const part: StackCounts = {
        frames: frames(5),
        parents: Uint32Array.from(nodes, ({ parent }, node) => (node === 0 ? 0 : parent % node)),
        nodeFrames: Uint32Array.from(nodes, ({ frame }) => frame),
        selfCounts: Float64Array.from(nodes, ({ self }, node) => (node === 0 ? 0 : self)),
      };
      const tree = readFrom(sumPart(part, (frame) => frame).tree, minimum);
      const read = stacksOf(tree, [...part.frames, OTHER], 5);
      const whole = countPaths(part);
      const shown = countPaths(read);
      expect(sumSubtrees(read.parents, read.selfCounts)[0]).toBe(
        sumSubtrees(part.parents, part.selfCounts)[0],
      );
      const isKept = (path: string, count: number) => count >= minimum || path.lastIndexOf(';') === 0;
      const kept = [...shown].filter(([path]) => !path.endsWith(OTHER.name));
      expect(new Map(kept)).toEqual(new Map([...whole].filter(([path, count]) => isKept(path, count))));
    }),
  );
});

it('takes lines of a function together', () => {
  const [main] = frames(1) as [Frame];
  const lines = [
    { ...main, line: 1 },
    { ...main, line: 2 },
  ];
  const part: StackCounts = {
    frames: lines,
    parents: Uint32Array.of(0, 0, 0),
    nodeFrames: Uint32Array.of(0, 0, 1),
    selfCounts: Float64Array.of(0, 3, 4),
  };
  const { totals, selfCounts } = sumPart(part, () => 7).tree;
  expect([[...totals], [...selfCounts]]).toEqual([
    [7, 7],
    [0, 7],
  ]);
});
