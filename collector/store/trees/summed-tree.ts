/**
 * The stacks of a part that is complete, summed by function. The frequent ones come first, so that a picture of many parts
 * reads as far as boxes are large enough to be seen: see docs/decisions/collector/summed-trees.md.
 */

import type { Frame, StackCounts, SummedFunctions } from '../store.ts';
import { PairTable } from './pair-table.ts';
import { StackTree } from './stack-tree.ts';
import { sumGroups } from './sum-groups.ts';
import { sumSubtrees } from './sum-subtrees.ts';

/** Boxes of fewer events are not kept: most stacks of an hour were seen once. */
export const LEAST_EVENTS = 2;

/** Columns of one length. The root comes first, then the processes, then the others, the largest first. */
export interface SummedTree {
  /** Each less than the id of its child. */
  parents: Uint32Array;
  functions: Uint32Array;
  /** Events of the box, those of boxes that are not kept included. */
  totals: Float64Array;
  selfCounts: Float64Array;
}

/** As {@link SummedFunctions}, with ids of functions. */
export type FunctionEvents = Omit<SummedFunctions, 'frames'>;

/** @param functionOf id of a frame's function */
export function sumPart(
  part: StackCounts,
  functionOf: (frame: number) => number,
): { tree: SummedTree; byFunction: FunctionEvents } {
  const { parents, functions, selfCounts } = mergeLines(part, functionOf);
  const tree = { parents, functions, selfCounts, totals: sumSubtrees(parents, selfCounts) };
  return { tree: keepFrequent(tree), byFunction: sumFunctions(tree) };
}

function keepFrequent({ parents, functions, totals, selfCounts }: SummedTree): SummedTree {
  const isKept = (_: number, node: number): boolean => parents[node] === 0 || totals[node]! >= LEAST_EVENTS;
  const rank = (node: number): number => (node === 0 ? 0 : parents[node] === 0 ? 1 : 2);
  const kept = Uint32Array.from(parents.keys())
    .filter(isKept)
    .sort((a, b) => rank(a) - rank(b) || totals[b]! - totals[a]! || a - b);
  const ids = new Uint32Array(parents.length);
  for (const [id, node] of kept.entries()) ids[node] = id;
  return {
    parents: kept.map((node) => ids[parents[node]!]!),
    functions: kept.map((node) => functions[node]!),
    totals: Float64Array.from(kept, (node) => totals[node]!),
    selfCounts: Float64Array.from(kept, (node) => selfCounts[node]!),
  };
}

function sumFunctions(tree: SummedTree): FunctionEvents {
  const { parents, functions } = tree;
  const ids = new PairTable();
  const [processes, found]: [number[], number[]] = [[], []];
  const ofNode = new Uint32Array(parents.length);
  const groups = new Uint32Array(parents.length);
  for (let node = 1; node < parents.length; node++) {
    const func = functions[node]!;
    const process = parents[node] === 0 ? func : ofNode[parents[node]!]!;
    ofNode[node] = process;
    let id = ids.get(process, func);
    if (id === undefined) {
      id = found.push(func) - 1;
      processes.push(process);
      ids.set(process, func, id);
    }
    groups[node] = id;
  }
  return {
    processes: Uint32Array.from(processes),
    functions: Uint32Array.from(found),
    sums: sumGroups(tree, groups, found.length),
  };
}

function mergeLines(part: StackCounts, functionOf: (frame: number) => number) {
  const tree = new StackTree();
  const totals = sumSubtrees(part.parents, part.selfCounts);
  const nodes = new Uint32Array(totals.length);
  for (let node = 1; node < nodes.length; node++) {
    if (totals[node]! > 0)
      nodes[node] = tree.child(nodes[part.parents[node]!]!, functionOf(part.nodeFrames[node]!));
  }
  const selfCounts = new Float64Array(tree.size);
  for (const [node, merged] of nodes.entries()) selfCounts[merged]! += part.selfCounts[node]!;
  const { parents, frames } = tree;
  return { parents: parents.subarray(0, tree.size), functions: frames.subarray(0, tree.size), selfCounts };
}

/** Events of no child that is there become a child of kind `other`. */
export function stacksOf(
  { parents, functions, totals, selfCounts }: SummedTree,
  frames: readonly Frame[],
  other: number,
): StackCounts {
  const rest = totals.slice();
  let cutCount = 0;
  for (let node = parents.length - 1; node >= 0; node--) {
    if (node > 0) rest[parents[node]!]! -= totals[node]!;
    rest[node]! -= selfCounts[node]!;
    if (rest[node]! > 0) cutCount++;
  }
  const length = parents.length + cutCount;
  const stacks = {
    frames,
    parents: new Uint32Array(length),
    nodeFrames: new Uint32Array(length).fill(other),
    selfCounts: new Float64Array(length),
  };
  stacks.parents.set(parents);
  stacks.nodeFrames.set(functions);
  stacks.selfCounts.set(selfCounts);
  for (let node = 0, at = parents.length; node < parents.length; node++) {
    if (rest[node] === 0) continue;
    stacks.parents[at] = node;
    stacks.selfCounts[at++] = rest[node]!;
  }
  return stacks;
}
