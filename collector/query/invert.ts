import { StackTree } from '../store/stack-tree.ts';
import type { StackCounts } from '../store/store.ts';
import type { PruneLimits } from './flame-tree.ts';
import { LargestFirst } from './largest-first.ts';
import { type MergedTree, mergeParts } from './merged-tree.ts';

/** Stacks that share their innermost frames down to some node of the inverted tree. */
interface Group {
  /** Node of the inverted tree. */
  at: number;
  /** For each stack the node of the tree that comes next, and its events. */
  cursors: number[];
  counts: number[];
  /** Their sum. */
  total: number;
}

/**
 * The stacks with the innermost frame first and the process last. The largest nodes are followed further out first,
 * `maxNodes` of them, and none that holds less than `minFraction` of the events: with a million stacks the whole would
 * be too large, and a picture folds the rest anyway. No node is larger than the one that it hangs below.
 */
export function invertParts(
  parts: readonly StackCounts[],
  { minFraction, maxNodes }: PruneLimits,
): StackCounts {
  const merged = mergeParts(parts);
  const tree = new StackTree();
  const selfCounts: number[] = [0];
  const minimum = Math.max(1, merged.totals[0]! * minFraction);
  const queue = new LargestFirst<Group>();
  queue.push({ at: 0, total: merged.totals[0]!, ...leavesOf(merged) });
  let expanded = 0;
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    if (next.total < minimum || expanded++ > maxNodes) {
      addTo(selfCounts, next.at, next.total);
      continue;
    }
    for (const group of splitByFrame(merged, next, tree)) {
      stepOut(merged, group, selfCounts);
      if (group.cursors.length > 0) queue.push(group);
    }
  }
  const { parents, frames, size } = tree;
  return {
    frames: merged.frames,
    parents: parents.subarray(0, size),
    nodeFrames: frames.subarray(0, size),
    selfCounts: Float64Array.from({ length: size }, (_, node) => selfCounts[node] ?? 0),
  };
}

function leavesOf({ selfCounts }: MergedTree): Pick<Group, 'cursors' | 'counts'> {
  const cursors: number[] = [];
  const counts: number[] = [];
  for (let node = 1; node < selfCounts.length; node++) {
    if (selfCounts[node] === 0) continue;
    cursors.push(node);
    counts.push(selfCounts[node]!);
  }
  return { cursors, counts };
}

function splitByFrame({ nodeFrames }: MergedTree, { at, cursors, counts }: Group, tree: StackTree): Group[] {
  const groups = new Map<number, Group>();
  for (const [i, cursor] of cursors.entries()) {
    const frame = nodeFrames[cursor]!;
    let group = groups.get(frame);
    if (group === undefined) {
      group = { at: tree.child(at, frame), cursors: [], counts: [], total: 0 };
      groups.set(frame, group);
    }
    group.cursors.push(cursor);
    group.counts.push(counts[i]!);
  }
  return [...groups.values()];
}

/** Goes to the callers; a stack that has none ends at the group's node. */
function stepOut({ parents }: MergedTree, group: Group, selfCounts: number[]): void {
  const { at, cursors, counts } = group;
  group.cursors = [];
  group.counts = [];
  group.total = 0;
  for (const [i, cursor] of cursors.entries()) {
    const parent = parents[cursor]!;
    if (parent === 0) {
      addTo(selfCounts, at, counts[i]!);
      continue;
    }
    group.cursors.push(parent);
    group.counts.push(counts[i]!);
    group.total += counts[i]!;
  }
}

function addTo(counts: number[], node: number, count: number): void {
  counts[node] = (counts[node] ?? 0) + count;
}
