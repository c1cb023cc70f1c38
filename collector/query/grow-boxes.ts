/**
 * The boxes of a flame graph of many stacks. Nodes of several parts, and of a function's lines, are merged into boxes from the
 * root on, the largest first, and only as far out as boxes are shown: most stacks of an hour are in boxes that nobody could see.
 */
import type { Frame, StackCounts } from '../store/store.ts';
import { LargestFirst } from './largest-first.ts';
import { FunctionTable } from './merged-tree.ts';

export interface PruneLimits {
  /** A node whose share of all samples is below this is folded. */
  minFraction: number;
  /** At most so many nodes are kept, the largest ones; the remainder nodes come on top. */
  maxNodes: number;
}

/** What an event of each kind weighs where boxes are compared. */
interface Weights {
  factor: number;
  carriedFactor: number;
}

/** A box. Events are those of its own and of what is below it too. */
export class Box {
  /** Index into the frames; -1: the root. */
  readonly frame: number;
  readonly parent: Box | undefined;
  /** What it is chosen by. */
  readonly total: number;
  readonly events: number;
  readonly carriedEvents: number;
  /** Of its own: known once its children are. */
  self = 0;
  carriedSelf = 0;
  /** The first of its nodes. */
  readonly node: number;
  kept: Box[] = [];

  constructor(
    frame: number,
    node: number,
    counts: Pick<Box, 'total' | 'events' | 'carriedEvents'>,
    parent?: Box,
  ) {
    this.frame = frame;
    this.node = node;
    this.total = counts.total;
    this.events = counts.events;
    this.carriedEvents = counts.carriedEvents;
    this.parent = parent;
  }
}

export interface GrownBoxes {
  root: Box;
  frames: readonly Frame[];
  /** Children of kept boxes that were not kept. */
  foldedNodes: number;
}

/**
 * Keeps the largest boxes, by the sum of their events times the factors. None is larger than the one that it hangs below.
 *
 * @param carried stacks that are counted apart
 * @param limitsOf the events of each kind → how much to keep
 */
export function growBoxes(
  own: readonly StackCounts[],
  carried: readonly StackCounts[],
  limitsOf: (events: number, carriedEvents: number) => PruneLimits & Weights,
): GrownBoxes {
  return new Grower(own, carried).grow(limitsOf);
}

class Grower {
  readonly #table = new FunctionTable();
  /** Nodes of all parts, numbered through from 1 on; 0 is none. */
  readonly #totals: Float64Array;
  readonly #functions: Uint32Array;
  readonly #firstChild: Uint32Array;
  /** The next node with the same parent; then, once that is in a box, the next in the same box. */
  readonly #next: Uint32Array;
  /** Nodes from here on are of carried stacks. */
  #carriedFrom = 1;
  #size = 1;
  #firstRoot = 0;
  /** By function, of the box at work; 0 between two. */
  readonly #heads: Uint32Array;
  readonly #events: Float64Array;
  readonly #carriedEvents: Float64Array;
  /** The functions of that box's children. */
  readonly #found: Uint32Array;

  constructor(own: readonly StackCounts[], carried: readonly StackCounts[]) {
    const nodes = [...own, ...carried].reduce((sum, { parents }) => sum + parents.length, 1);
    this.#totals = new Float64Array(nodes);
    this.#functions = new Uint32Array(nodes);
    this.#firstChild = new Uint32Array(nodes);
    this.#next = new Uint32Array(nodes);
    for (const part of own) this.#add(part);
    this.#carriedFrom = this.#size;
    for (const part of carried) this.#add(part);
    this.#heads = new Uint32Array(this.#table.frames.length);
    this.#events = new Float64Array(this.#heads.length);
    this.#carriedEvents = new Float64Array(this.#heads.length);
    this.#found = new Uint32Array(this.#heads.length);
  }

  #add({ parents, nodeFrames, selfCounts, frames }: StackCounts): void {
    const [totals, functions, firstChild, next] = [
      this.#totals,
      this.#functions,
      this.#firstChild,
      this.#next,
    ];
    const start = this.#size;
    const idOf = this.#table.idsOf(frames);
    totals.set(selfCounts, start);
    // Children come after their parent: a node's total is known when it is its turn.
    for (let node = parents.length - 1; node > 0; node--) {
      const total = totals[start + node]!;
      if (total === 0) continue;
      const parent = start + parents[node]!;
      totals[parent]! += total;
      functions[start + node] = idOf(nodeFrames[node]!);
      next[start + node] = firstChild[parent]!;
      firstChild[parent] = start + node;
    }
    next[start] = this.#firstRoot;
    this.#firstRoot = start;
    this.#size += parents.length;
  }

  grow(limitsOf: (events: number, carriedEvents: number) => PruneLimits & Weights): GrownBoxes {
    let [events, carriedEvents] = [0, 0];
    for (let node = this.#firstRoot; node !== 0; node = this.#next[node]!) {
      if (node < this.#carriedFrom) events += this.#totals[node]!;
      else carriedEvents += this.#totals[node]!;
    }
    const { minFraction, maxNodes, ...weights } = limitsOf(events, carriedEvents);
    const total = weights.factor * events + weights.carriedFactor * carriedEvents;
    const root = new Box(-1, this.#firstRoot, { total, events, carriedEvents });
    const queue = new LargestFirst<Box>();
    let foldedNodes = 0;
    const expand = (box: Box): void => {
      const { kept, folded } = this.#childrenOf(box, total * minFraction, weights);
      for (const child of kept) queue.push(child);
      foldedNodes += folded;
    };
    expand(root);
    for (let count = 1; count < maxNodes; count++) {
      const box = queue.pop();
      if (box === undefined) break;
      box.parent!.kept.push(box);
      expand(box);
    }
    return { root, frames: this.#table.frames, foldedNodes: foldedNodes + queue.length };
  }

  /** Most children of a box are too small to be seen: those are counted, and nothing is made of them. */
  #childrenOf(
    box: Box,
    minimum: number,
    { factor, carriedFactor }: Weights,
  ): { kept: Box[]; folded: number } {
    const count = this.#sumChildren(box.node);
    const kept: Box[] = [];
    box.self = box.events;
    box.carriedSelf = box.carriedEvents;
    for (let i = 0; i < count; i++) {
      const func = this.#found[i]!;
      const events = this.#events[func]!;
      const carriedEvents = this.#carriedEvents[func]!;
      const total = factor * events + carriedFactor * carriedEvents;
      box.self -= events;
      box.carriedSelf -= carriedEvents;
      if (total >= minimum && this.#table.frames[func]!.kind !== 'other')
        kept.push(new Box(func, this.#heads[func]!, { total, events, carriedEvents }, box));
      this.#heads[func] = 0;
      this.#events[func] = 0;
      this.#carriedEvents[func] = 0;
    }
    return { kept, folded: count - kept.length };
  }

  /** How many functions a box's children have; which, their nodes and their events are in the columns by function. */
  #sumChildren(first: number): number {
    let count = 0;
    const [totals, functions, firstChild, next] = [
      this.#totals,
      this.#functions,
      this.#firstChild,
      this.#next,
    ];
    const [heads, found] = [this.#heads, this.#found];
    const [ownEvents, carriedEvents] = [this.#events, this.#carriedEvents];
    for (let member = first; member !== 0; member = next[member]!) {
      for (let node = firstChild[member]!, after = 0; node !== 0; node = after) {
        after = next[node]!;
        const func = functions[node]!;
        if (heads[func] === 0) found[count++] = func;
        next[node] = heads[func]!;
        heads[func] = node;
        const events = node < this.#carriedFrom ? ownEvents : carriedEvents;
        events[func]! += totals[node]!;
      }
    }
    return count;
  }
}
