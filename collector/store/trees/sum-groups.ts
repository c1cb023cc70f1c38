import type { Sums } from '../store.ts';

/** Sums over the boxes of a tree, whichever way they belong together. */

/** Columns of one length: as in StackCounts, and the events of each node or below it. */
export interface CountedStacks {
  parents: Uint32Array;
  selfCounts: Float64Array;
  totals: Float64Array;
}

/** The children of each node as a list: its first child, and the next of the same parent; 0 ends it. */
export function linkChildren(parents: Uint32Array): { firstChild: Uint32Array; sibling: Uint32Array } {
  const firstChild = new Uint32Array(parents.length);
  const sibling = new Uint32Array(parents.length);
  for (let node = parents.length - 1; node > 0; node--) {
    sibling[node] = firstChild[parents[node]!]!;
    firstChild[parents[node]!] = node;
  }
  return { firstChild, sibling };
}

/** Sums over nodes that belong together; a stack that holds a group several times counts once. */
export function sumGroups(
  { parents, selfCounts, totals }: CountedStacks,
  groups: Uint32Array,
  groupCount: number,
): Sums {
  const self = new Float64Array(groupCount);
  const total = new Float64Array(groupCount);
  const { firstChild, sibling } = linkChildren(parents);
  // Depth first without a call stack: how often each group is on the path shows recursion.
  const onPath = new Uint32Array(groupCount);
  let node = firstChild[0]!;
  while (node !== 0) {
    const group = groups[node]!;
    self[group]! += selfCounts[node]!;
    if (onPath[group]!++ === 0) total[group]! += totals[node]!;
    let next = firstChild[node]!;
    while (next === 0 && node !== 0) {
      onPath[groups[node]!]!--;
      next = sibling[node]!;
      if (next === 0) {
        node = parents[node]!;
        if (node === 0) break;
      }
    }
    node = next;
  }
  return { self, total };
}
