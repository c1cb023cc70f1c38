/**
 * Flame graphs of many stacks. Boxes of several parts, and of a function's lines, are merged from the root on, the largest
 * first, and only as far out as boxes are shown: most stacks of an hour are in boxes that nobody could see.
 */
import { compareFrames, OTHER } from '../store/frames.ts';
import type { Frame, StackCounts } from '../store/store.ts';
import { linkChildren } from '../store/sum-groups.ts';
import { sumSubtrees } from '../store/sum-subtrees.ts';
import { LargestFirst } from './largest-first.ts';
import { FunctionTable } from './merged-tree.ts';

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
  /** How many nodes went into the remainders, without those below them, and the samples in them. */
  foldedNodes: number;
  foldedSamples: number;
  /** A second count of each node's own, where one was carried along. */
  carried?: Float64Array;
}

/** Of children: by name, or the largest first. */
type Order = 'name' | 'size';

export function buildFlameTree(
  parts: readonly StackCounts[],
  limits = DEFAULT_LIMITS,
  order: Order = 'name',
): FlameTree {
  const grower = new Grower();
  for (const part of parts) grower.add(part, false);
  const { root, foldedNodes } = grower.grow(limits, 1, 0);
  return layOut(root, grower.frames, { order, foldedNodes, carries: false });
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
  const grower = new Grower();
  for (const part of now) grower.add(part, false);
  for (const part of base) grower.add(part, true);
  const { own, carried } = grower.samples;
  const { root, foldedNodes } = grower.grow(limits, 1 / Math.max(1, own), 1 / Math.max(1, carried));
  return layOut(root, grower.frames, { order: 'name', foldedNodes, carries: true });
}

/** A part's stacks, ready to be followed from the root outwards. */
interface Source {
  part: StackCounts;
  totals: Float64Array;
  firstChild: Uint32Array;
  sibling: Uint32Array;
  idOf(frame: number): number;
  isCarried: boolean;
}

/** A box. Counts are those of its own and of what is below it too. */
class Box {
  readonly frame: number;
  /** What it is chosen by. */
  total = 0;
  self = 0;
  events = 0;
  carriedSelf = 0;
  carriedEvents = 0;
  /** Where it is: sources and nodes, in turn. */
  members: number[] = [];
  kept: Box[] = [];

  readonly parent: Box | undefined;

  constructor(frame: number, parent?: Box) {
    this.frame = frame;
    this.parent = parent;
  }
}

class Grower {
  readonly #table = new FunctionTable();
  readonly #sources: Source[] = [];
  /** By frame; 0 between two looks. */
  readonly #sums: number[] = [];

  get frames(): readonly Frame[] {
    return this.#table.frames;
  }

  get samples(): { own: number; carried: number } {
    const samples = { own: 0, carried: 0 };
    for (const { totals, isCarried } of this.#sources) samples[isCarried ? 'carried' : 'own'] += totals[0]!;
    return samples;
  }

  add(part: StackCounts, isCarried: boolean): void {
    this.#sources.push({
      part,
      totals: sumSubtrees(part.parents, part.selfCounts),
      ...linkChildren(part.parents),
      idOf: this.#table.idsOf(part.frames),
      isCarried,
    });
  }

  /** Keeps the largest boxes, by the sum of their counts times the factors. None is larger than the one that it hangs below. */
  grow(
    { minFraction, maxNodes }: PruneLimits,
    factor: number,
    carriedFactor: number,
  ): { root: Box; foldedNodes: number } {
    const root = new Box(-1);
    for (const index of this.#sources.keys()) this.#addMember(root, index, 0);
    root.total = factor * root.events + carriedFactor * root.carriedEvents;
    const weights = this.#sources.map(({ isCarried }) => (isCarried ? carriedFactor : factor));
    const minimum = root.total * minFraction;
    const queue = new LargestFirst<Box>();
    let folded = 0;
    const expand = (box: Box): void => {
      const children = this.#childrenOf(box, minimum, weights);
      for (const child of children.kept) queue.push(child);
      folded += children.folded;
      box.members = [];
    };
    expand(root);
    for (let count = 1; count < maxNodes; count++) {
      const box = queue.pop();
      if (box === undefined) break;
      box.parent!.kept.push(box);
      expand(box);
    }
    return { root, foldedNodes: folded + queue.length };
  }

  /** Most children of a box are too small to be seen: those are counted, and nothing is made of them. */
  #childrenOf(
    box: Box,
    minimum: number,
    weights: readonly number[],
  ): { kept: Iterable<Box>; folded: number } {
    const { members } = box;
    const found = this.#sumChildren(box, weights);
    const children = new Map<number, Box>();
    for (const frame of found) {
      const total = this.#sums[frame]!;
      if (total < minimum || this.frames[frame]!.kind === 'other') continue;
      const child = new Box(frame, box);
      child.total = total;
      children.set(frame, child);
    }
    for (let i = 0; children.size > 0 && i < members.length; i += 2) {
      const { firstChild, sibling, totals, part, idOf } = this.#sources[members[i]!]!;
      for (let node = firstChild[members[i + 1]!]!; node !== 0; node = sibling[node]!) {
        if (totals[node] === 0) continue;
        const child = children.get(idOf(part.nodeFrames[node]!));
        if (child !== undefined) this.#addMember(child, members[i]!, node);
      }
    }
    for (const frame of found) this.#sums[frame] = 0;
    return { kept: children.values(), folded: found.length - children.size };
  }

  /** The frames of a box's children; what they weigh is in `#sums`. */
  #sumChildren({ members }: Box, weights: readonly number[]): number[] {
    const found: number[] = [];
    for (let i = 0; i < members.length; i += 2) {
      const { firstChild, sibling, totals, part, idOf } = this.#sources[members[i]!]!;
      const weight = weights[members[i]!]!;
      for (let node = firstChild[members[i + 1]!]!; node !== 0; node = sibling[node]!) {
        const total = totals[node]!;
        if (total === 0) continue;
        const frame = idOf(part.nodeFrames[node]!);
        const sum = this.#sums[frame] ?? 0;
        if (sum === 0) found.push(frame);
        this.#sums[frame] = sum + weight * total;
      }
    }
    return found;
  }

  #addMember(box: Box, index: number, node: number): void {
    const { totals, part, isCarried } = this.#sources[index]!;
    box.members.push(index, node);
    if (isCarried) {
      box.carriedSelf += part.selfCounts[node]!;
      box.carriedEvents += totals[node]!;
    } else {
      box.self += part.selfCounts[node]!;
      box.events += totals[node]!;
    }
  }
}

interface LayOut {
  order: Order;
  foldedNodes: number;
  carries: boolean;
}

function layOut(root: Box, frames: readonly Frame[], { order, foldedNodes, carries }: LayOut): FlameTree {
  const out = new FlameTreeBuilder(frames);
  const compareBoxes = (a: Box, b: Box): number =>
    (order === 'size' ? b.events - a.events : 0) || compareFrames(frames[a.frame]!, frames[b.frame]!);
  const queue = [{ box: root, at: out.addRoot(root) }];
  for (const { box, at } of queue) {
    let rest = box.events - box.self;
    let carriedRest = box.carriedEvents - box.carriedSelf;
    for (const child of box.kept.sort(compareBoxes)) {
      rest -= child.events;
      carriedRest -= child.carriedEvents;
      queue.push({ box: child, at: out.add(at, child) });
    }
    if (rest > 0 || carriedRest > 0) out.addOther(at, rest, carriedRest);
  }
  return out.finish(foldedNodes, carries);
}

const ROOT: Frame = { name: 'all', file: '', mapping: '', kind: 'root' };

class FlameTreeBuilder {
  readonly #source: readonly Frame[];
  readonly #frames: Frame[] = [ROOT, OTHER];
  /** Frame of the boxes → frame of the result, which has only what its nodes need. */
  readonly #frameIds = new Map<number, number>();
  readonly #parents: number[] = [];
  readonly #nodeFrames: number[] = [];
  readonly #selfCounts: number[] = [];
  readonly #carried: number[] = [];
  #foldedSamples = 0;

  constructor(source: readonly Frame[]) {
    this.#source = source;
  }

  addRoot({ self, carriedSelf }: Box): number {
    return this.#push(0, 0, self, carriedSelf);
  }

  addOther(parent: number, samples: number, carried: number): void {
    this.#foldedSamples += samples;
    this.#push(parent, 1, samples, carried);
  }

  add(parent: number, { frame, self, carriedSelf }: Box): number {
    let id = this.#frameIds.get(frame);
    if (id === undefined) {
      id = this.#frames.push(this.#source[frame]!) - 1;
      this.#frameIds.set(frame, id);
    }
    return this.#push(parent, id, self, carriedSelf);
  }

  finish(foldedNodes: number, carries: boolean): FlameTree {
    return {
      frames: this.#frames,
      parents: Uint32Array.from(this.#parents),
      nodeFrames: Uint32Array.from(this.#nodeFrames),
      selfCounts: Float64Array.from(this.#selfCounts),
      foldedNodes,
      foldedSamples: this.#foldedSamples,
      ...(carries && { carried: Float64Array.from(this.#carried) }),
    };
  }

  #push(parent: number, frame: number, self: number, carried: number): number {
    this.#nodeFrames.push(frame);
    this.#selfCounts.push(self);
    this.#carried.push(carried);
    return this.#parents.push(parent) - 1;
  }
}
