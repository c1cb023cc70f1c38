/** Flame graphs of many stacks, in the order in which they are drawn. */

import type { Frame, StackCounts } from '../../store/store.ts';
import { compareFrames, OTHER } from '../../store/trees/frames.ts';
import { type Box, type GrownBoxes, OTHER_BOX, type PruneLimits } from './boxes.ts';
import { growBoxes } from './grow-boxes.ts';

/**
 * A twentieth of a pixel on a screen of 1,000: seen only after zooming in, which asks again, for the boxes inside of the zoomed
 * one. Below 20,000 samples that is less than one, and nothing is folded but what is beyond the number of nodes.
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
  /** The box that is looked at, where that was asked for and is there. */
  zoomed?: Zoomed;
  /** A second count of each node's own, where one was carried along. */
  carried?: Float64Array;
}

export interface Zoomed {
  events: number;
  carriedEvents: number;
  /** Of the rest of a box: the children that are not in the rest. */
  beside: readonly Frame[];
}

/** Of children: by name, or the largest first. */
type Order = 'name' | 'size';

export function buildFlameTree(
  parts: readonly StackCounts[],
  limits = DEFAULT_LIMITS,
  order: Order = 'name',
): FlameTree {
  const grown = growBoxes(parts, [], () => ({ ...limits, factor: 1, carriedFactor: 0 }));
  return layOut(grown, { order, carries: false });
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
  const grown = growBoxes(now, base, (events, carriedEvents) => ({
    ...limits,
    factor: 1 / Math.max(1, events),
    carriedFactor: 1 / Math.max(1, carriedEvents),
  }));
  return layOut(grown, { order: 'name', carries: true });
}

function layOut(
  { root, frames, foldedNodes, zoomed }: GrownBoxes,
  { order, carries }: { order: Order; carries: boolean },
): FlameTree {
  const out = new FlameTreeBuilder(frames);
  const compareBoxes = (a: Box, b: Box): number =>
    (order === 'size' ? b.events - a.events : 0) || compareFrames(frames[a.frame]!, frames[b.frame]!);
  const queue = [root];
  out.addRoot(root);
  // Boxes go out in the order of the queue, with the remainders in between.
  const ids = [0];
  for (let i = 0; i < queue.length; i++) {
    const [box, at] = [queue[i]!, ids[i]!];
    let rest = box.events - box.self;
    let carriedRest = box.carriedEvents - box.carriedSelf;
    const folded = box.rest;
    const children = box.kept.length > 1 ? box.kept.toSorted(compareBoxes) : box.kept;
    for (const child of children) {
      rest -= child.events;
      carriedRest -= child.carriedEvents;
      queue.push(child);
      ids.push(out.add(at, child));
    }
    if (folded !== undefined) {
      queue.push(folded);
      ids.push(out.add(at, folded));
    } else if (rest > 0 || carriedRest > 0) out.addOther(at, rest, carriedRest);
  }
  const tree = out.finish(foldedNodes, carries);
  if (zoomed === undefined) return tree;
  const beside = zoomed.frame === OTHER_BOX ? (zoomed.parent?.kept ?? []) : [];
  const { events, carriedEvents } = zoomed;
  return { ...tree, zoomed: { events, carriedEvents, beside: beside.map(({ frame }) => frames[frame]!) } };
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
    if (frame === OTHER_BOX) return this.#push(parent, 1, self, carriedSelf);
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
