import { FrameTable } from '../store/frame-table.ts';
import { StackTree } from '../store/stack-tree.ts';
import type { Frame, StackCounts } from '../store/store.ts';

export interface PruneLimits {
  /** A node whose share of all samples is below this is folded. */
  minFraction: number;
  /** At most so many nodes are kept, the largest ones; the remainder nodes come on top. */
  maxNodes: number;
}

/**
 * A twentieth of a pixel on a screen of 1,000: seen only after zooming in a long way. Below 20,000 samples that is
 * less than one, and nothing is folded but what is beyond the number of nodes.
 */
export const DEFAULT_LIMITS: PruneLimits = { minFraction: 1 / 20_000, maxNodes: 20_000 };

/**
 * A pruned flame graph, breadth first: a parent comes before its children, the children of a node are
 * neighbours, and so are the nodes of a level, in the order in which they are drawn. Node 0 is the root.
 * Children are in the order of their names, so that a live picture keeps its places, unless asked otherwise; what was folded is a
 * last child of kind `other`. The self counts add up to the samples.
 */
export interface FlameTree {
  frames: Frame[];
  parents: Uint32Array;
  /** Index into `frames`. */
  nodeFrames: Uint32Array;
  selfCounts: Float64Array;
  /** How many nodes went into the remainders, and the samples in them. */
  foldedNodes: number;
  foldedSamples: number;
  /** A second count of each node's own, where one was carried along. */
  carried?: Float64Array;
}

export function buildFlameTree(
  parts: readonly StackCounts[],
  limits = DEFAULT_LIMITS,
  order: Order = 'name',
): FlameTree {
  const merged = mergeParts(parts);
  const kept = chooseKept(merged, limits);
  return layOut(merged, kept, { order });
}

/** Of children: by name, or the largest first. */
type Order = 'name' | 'size';

/** All parts as one tree; node 0 is the root, a parent's id is less than its children's. */
export interface MergedTree {
  frames: Frame[];
  parents: Uint32Array;
  nodeFrames: Uint32Array;
  selfCounts: Float64Array;
  totals: Float64Array;
}

/** Given `nodeMaps`, an entry per part, each becomes the merged node of each of the part's nodes. */
export function mergeParts(parts: readonly StackCounts[], nodeMaps?: Uint32Array[]): MergedTree {
  const table = new FrameTable();
  const tree = new StackTree(Math.max(0, ...parts.map(({ parents }) => parents.length)));
  let selfCounts = new Float64Array(1024);
  // parts that were loaded from disk share their frames
  const known = new Map<Frame, number>();
  const idOf = (frame: Frame): number => {
    const id = known.get(frame) ?? table.intern(frame);
    known.set(frame, id);
    return id;
  };
  for (const [index, part] of parts.entries()) {
    const totals = sumSubtrees(part.parents, part.selfCounts);
    const frameIds = new Int32Array(part.frames.length).fill(-1);
    const nodes = new Uint32Array(part.parents.length);
    if (nodeMaps !== undefined) nodeMaps[index] = nodes;
    selfCounts[0]! += part.selfCounts[0]!;
    for (let node = 1; node < nodes.length; node++) {
      if (totals[node] === 0) continue;
      const frame = part.nodeFrames[node]!;
      if (frameIds[frame] === -1) frameIds[frame] = idOf(part.frames[frame]!);
      const merged = tree.child(nodes[part.parents[node]!]!, frameIds[frame]!);
      nodes[node] = merged;
      if (merged >= selfCounts.length) selfCounts = enlarged(selfCounts);
      selfCounts[merged]! += part.selfCounts[node]!;
    }
  }
  const parents = tree.parents.subarray(0, tree.size);
  selfCounts = selfCounts.subarray(0, tree.size);
  const totals = sumSubtrees(parents, selfCounts);
  return {
    frames: table.frames,
    parents,
    nodeFrames: tree.frames.subarray(0, tree.size),
    selfCounts,
    totals,
  };
}

export function sumSubtrees(parents: Uint32Array, selfCounts: Float64Array): Float64Array {
  const totals = selfCounts.slice();
  for (let node = totals.length - 1; node > 0; node--) totals[parents[node]!]! += totals[node]!;
  return totals;
}

function enlarged(array: Float64Array<ArrayBuffer>): Float64Array<ArrayBuffer> {
  const larger = new Float64Array(array.length * 2);
  larger.set(array);
  return larger;
}

/** The largest nodes. A parent counts no less than its children and has a smaller id: it is kept with them. */
function chooseKept({ totals }: MergedTree, limits: PruneLimits): Uint8Array {
  const minimum = totals[0]! * limits.minFraction;
  const large: number[] = [];
  for (let node = 0; node < totals.length; node++) if (totals[node]! >= minimum) large.push(node);
  if (large.length > limits.maxNodes) large.sort((a, b) => totals[b]! - totals[a]! || a - b);
  const kept = new Uint8Array(totals.length);
  for (const node of large.slice(0, Math.max(1, limits.maxNodes))) kept[node] = 1;
  return kept;
}

/**
 * The tree of two windows: boxes are kept by the mean of their shares, `selfCounts` are those of now and `carried`
 * those of the base.
 */
export function buildDiffTree(
  now: readonly StackCounts[],
  base: readonly StackCounts[],
  limits = DEFAULT_LIMITS,
): FlameTree {
  const { merged, own, other } = mergeWindows(now, base);
  const [ownSum, otherSum] = [Math.max(1, own.totals[0]!), Math.max(1, other.totals[0]!)];
  const weights = own.selfCounts.map((self, node) => self / ownSum + other.selfCounts[node]! / otherSum);
  const weighted = { ...merged, selfCounts: weights, totals: sumSubtrees(merged.parents, weights) };
  const kept = chooseKept(weighted, limits);
  return layOut({ ...merged, ...own }, kept, { order: 'name', carried: other.selfCounts });
}

type Counts = Pick<MergedTree, 'parents' | 'selfCounts' | 'totals'>;

/** The stacks of two windows as one tree, with the counts of each. */
export function mergeWindows(
  now: readonly StackCounts[],
  base: readonly StackCounts[],
): { merged: MergedTree; own: Counts; other: Counts } {
  const nodeMaps = [...now, ...base].map(() => new Uint32Array());
  const merged = mergeParts([...now, ...base], nodeMaps);
  const { parents } = merged;
  const count = (parts: readonly StackCounts[], first: number): Counts => {
    const selfCounts = new Float64Array(parents.length);
    for (const [i, part] of parts.entries()) {
      const nodes = nodeMaps[first + i]!;
      for (let node = 0; node < nodes.length; node++) selfCounts[nodes[node]!]! += part.selfCounts[node]!;
    }
    return { parents, selfCounts, totals: sumSubtrees(parents, selfCounts) };
  };
  return { merged, own: count(now, 0), other: count(base, now.length) };
}

function layOut(
  merged: MergedTree,
  kept: Uint8Array,
  { order, carried }: { order: Order; carried?: Float64Array },
): FlameTree {
  const { totals } = merged;
  const carriedTotals = carried && sumSubtrees(merged.parents, carried);
  const children = listChildren(merged, kept, order);
  const out = new FlameTreeBuilder(merged.frames);
  if (carried !== undefined) out.carried.push(carried[0]!);
  const queue: { node: number; at: number }[] = [{ node: 0, at: out.addRoot(merged.selfCounts[0]!) }];
  for (const { node, at } of queue) {
    let rest = totals[node]! - merged.selfCounts[node]!;
    let carriedRest = carried === undefined ? 0 : carriedTotals![node]! - carried[node]!;
    for (const child of children[node] ?? []) {
      rest -= totals[child]!;
      queue.push({ node: child, at: out.add(at, merged.nodeFrames[child]!, merged.selfCounts[child]!) });
      if (carried === undefined) continue;
      carriedRest -= carriedTotals![child]!;
      out.carried.push(carried[child]!);
    }
    if (rest <= 0 && carriedRest <= 0) continue;
    out.addOther(at, rest);
    if (carried !== undefined) out.carried.push(carriedRest);
  }
  return out.finish(kept.length - kept.reduce((sum, one) => sum + one, 0));
}

function listChildren(
  { frames, parents, nodeFrames, totals }: MergedTree,
  kept: Uint8Array,
  order: Order,
): number[][] {
  const children: number[][] = [];
  for (let node = 1; node < parents.length; node++) {
    if (kept[node] === 0) continue;
    const siblings = children[parents[node]!];
    if (siblings === undefined) children[parents[node]!] = [node];
    else siblings.push(node);
  }
  const frameOf = (node: number): Frame => frames[nodeFrames[node]!]!;
  const compareNodes = (a: number, b: number): number =>
    (order === 'size' ? totals[b]! - totals[a]! : 0) || compareFrames(frameOf(a), frameOf(b));
  for (const list of children) if (list !== undefined && list.length > 1) list.sort(compareNodes);
  return children;
}

function compareFrames(a: Frame, b: Frame): number {
  return compare(a.name, b.name) || compare(a.mapping, b.mapping) || compare(a.file, b.file);
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

const ROOT: Frame = { name: 'all', file: '', mapping: '', kind: 'root' };
const OTHER: Frame = { name: '(other)', file: '', mapping: '', kind: 'other' };

class FlameTreeBuilder {
  readonly #source: readonly Frame[];
  readonly #frames: Frame[] = [ROOT, OTHER];
  /** Frame of the merged tree → frame of the result, which has only what its nodes need. */
  readonly #frameIds = new Map<number, number>();
  readonly #parents: number[] = [];
  readonly #nodeFrames: number[] = [];
  readonly #selfCounts: number[] = [];
  #foldedSamples = 0;
  /** Filled in step with the nodes, if there is a second count. */
  readonly carried: number[] = [];

  constructor(source: readonly Frame[]) {
    this.#source = source;
  }

  addRoot(self: number): number {
    return this.#push(0, 0, self);
  }

  addOther(parent: number, samples: number): void {
    this.#foldedSamples += samples;
    this.#push(parent, 1, samples);
  }

  add(parent: number, frame: number, self: number): number {
    let id = this.#frameIds.get(frame);
    if (id === undefined) {
      id = this.#frames.push(this.#source[frame]!) - 1;
      this.#frameIds.set(frame, id);
    }
    return this.#push(parent, id, self);
  }

  finish(foldedNodes: number): FlameTree {
    return {
      frames: this.#frames,
      parents: Uint32Array.from(this.#parents),
      nodeFrames: Uint32Array.from(this.#nodeFrames),
      selfCounts: Float64Array.from(this.#selfCounts),
      foldedNodes,
      foldedSamples: this.#foldedSamples,
      ...(this.carried.length === 0 ? {} : { carried: Float64Array.from(this.carried) }),
    };
  }

  #push(parent: number, frame: number, self: number): number {
    this.#nodeFrames.push(frame);
    this.#selfCounts.push(self);
    return this.#parents.push(parent) - 1;
  }
}
