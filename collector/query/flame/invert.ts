import { type PathHash, ROOT_HASH, stepDown, type ZoomKey } from '../../../common/flame/path-key.ts';
import type { StackCounts } from '../../store/store.ts';
import { OTHER } from '../../store/trees/frames.ts';
import { StackTree } from '../../store/trees/stack-tree.ts';
import type { PruneLimits, ZoomPath } from './boxes.ts';
import { LargestFirst } from './largest-first.ts';
import { type MergedTree, mergeParts } from './merged-tree.ts';
import { frameHash } from './path-hashes.ts';

/** Stacks that share their innermost frames down to some node of the inverted tree. */
interface Group {
  /** Node of the inverted tree. */
  at: number;
  /** For each stack the node of the tree that comes next, and its events. */
  cursors: number[];
  counts: number[];
  /** Their sum. */
  events: number;
  /** What it is chosen by: its share of what it is measured by. */
  total: number;
  /** As of a Box. */
  isInside: boolean;
  wayDepth: number;
}

/**
 * The stacks with the innermost frame first and the process last. The largest nodes are followed further out first,
 * `maxNodes` of them, and none that holds less than `minFraction` of the events, or of those of the box that is looked at: with a
 * million stacks the whole would be too large, and a picture folds the rest anyway. What is not followed is "(other)". No node is
 * larger than the one that it hangs below.
 */
export function invertParts(
  parts: readonly StackCounts[],
  { minFraction, maxNodes, zoom }: PruneLimits,
): StackCounts {
  const merged = mergeParts(parts);
  const path = zoom && findInverted(merged, zoom);
  const tree = new StackTree();
  const selfCounts: number[] = [0];
  const other = merged.frames.length;
  const all = merged.totals[0]!;
  let zoomed = all;
  const measure = (group: Omit<Group, 'total'>): Group => {
    const isWay = group.wayDepth >= 0;
    const share = group.events / (group.isInside ? zoomed : all);
    return { ...group, total: isWay ? Number.POSITIVE_INFINITY : share };
  };
  const queue = new LargestFirst<Group>();
  const root = { at: 0, events: all, total: 1, isInside: path === undefined, wayDepth: path ? 0 : -1 };
  queue.push({ ...root, ...leavesOf(merged) });
  let [expanded, outline] = [0, 0];
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    const minimum = next.isInside && zoom !== undefined && zoom.without > 0 ? 0 : minFraction;
    const isOutside = !next.isInside && next.wayDepth < 0;
    if (isOutside) outline++;
    else if (next.wayDepth < 0) expanded++;
    const isTooMuch = isOutside ? outline > maxNodes / 4 : expanded > maxNodes + 1;
    if (next.total < minimum || next.events < 1 || isTooMuch) {
      if (next.events > 0) addTo(selfCounts, tree.child(next.at, other), next.events);
      continue;
    }
    const groups = splitByFrame(merged, next, tree);
    let beside: ReadonlySet<Split> = new Set();
    if (path !== undefined && next.wayDepth === path.functions.length) {
      next.isInside = true;
      zoomed = next.events;
      beside = new Set(path.without > 0 ? largest(groups, path.without, merged, tree) : []);
    }
    for (const group of groups) {
      const { wayDepth } = next;
      const isWay = path !== undefined && wayDepth >= 0 && path.functions[wayDepth] === tree.frames[group.at];
      stepOut(merged, group, selfCounts);
      if (group.cursors.length === 0) continue;
      queue.push(
        measure({
          ...group,
          isInside: next.isInside && !beside.has(group),
          wayDepth: isWay ? wayDepth + 1 : -1,
        }),
      );
    }
  }
  const { parents, frames, size } = tree;
  return {
    frames: [...merged.frames, OTHER],
    parents: parents.subarray(0, size),
    nodeFrames: frames.subarray(0, size),
    selfCounts: Float64Array.from({ length: size }, (_, node) => selfCounts[node] ?? 0),
  };
}

/** The way to a box of the inverted tree: along those stacks whose hash, from their end on, becomes its own. */
function findInverted(merged: MergedTree, { low, high, without }: ZoomKey): ZoomPath | undefined {
  const { parents, nodeFrames, selfCounts, frames } = merged;
  const hashes = frames.map(frameHash);
  if (low === ROOT_HASH.low && high === ROOT_HASH.high) return { functions: [], without };
  for (const [leaf, count] of selfCounts.entries()) {
    let hash: PathHash = ROOT_HASH;
    for (let at = count > 0 ? leaf : 0; at !== 0; at = parents[at]!) {
      hash = stepDown(hash, hashes[nodeFrames[at]!]!);
      if (hash.low !== low || hash.high !== high) continue;
      const functions: number[] = [];
      for (let node = leaf; functions.push(nodeFrames[node]!) > 0 && node !== at; node = parents[node]!);
      return { functions, without };
    }
  }
  return undefined;
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

type Split = Pick<Group, 'at' | 'cursors' | 'counts' | 'events'>;

/** Those that a flame graph shows beside the rest: see growBoxes for their order. */
function largest(
  groups: readonly Split[],
  count: number,
  { frames }: MergedTree,
  tree: StackTree,
): readonly Split[] {
  const sums = new Map(groups.map((group) => [group, group.counts.reduce((a, b) => a + b, 0)]));
  const hashOf = ({ at }: Split): PathHash => frameHash(frames[tree.frames[at]!]!);
  const compare = (a: Split, b: Split): number =>
    sums.get(b)! - sums.get(a)! || hashOf(a).low - hashOf(b).low || hashOf(a).high - hashOf(b).high;
  return groups.toSorted(compare).slice(0, count);
}

function splitByFrame({ nodeFrames }: MergedTree, { at, cursors, counts }: Group, tree: StackTree): Split[] {
  const groups = new Map<number, Split>();
  for (const [i, cursor] of cursors.entries()) {
    const frame = nodeFrames[cursor]!;
    let group = groups.get(frame);
    if (group === undefined) {
      group = { at: tree.child(at, frame), cursors: [], counts: [], events: 0 };
      groups.set(frame, group);
    }
    group.cursors.push(cursor);
    group.counts.push(counts[i]!);
  }
  return [...groups.values()];
}

/** Goes to the callers; a stack that has none ends at the group's node. */
function stepOut({ parents }: MergedTree, group: Split, selfCounts: number[]): void {
  const { at, cursors, counts } = group;
  group.cursors = [];
  group.counts = [];
  group.events = 0;
  for (const [i, cursor] of cursors.entries()) {
    const parent = parents[cursor]!;
    if (parent === 0) {
      addTo(selfCounts, at, counts[i]!);
      continue;
    }
    group.cursors.push(parent);
    group.counts.push(counts[i]!);
    group.events += counts[i]!;
  }
}

function addTo(counts: number[], node: number, count: number): void {
  counts[node] = (counts[node] ?? 0) + count;
}
