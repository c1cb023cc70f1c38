/**
 * The boxes of a flame graph of many stacks. Nodes of several parts, and of a function's lines, are merged into boxes from the
 * root on, the largest first, and only as far out as boxes are shown: most stacks of an hour are in boxes that nobody could see.
 * Of a picture that is zoomed the boxes inside are chosen by their share of the zoomed one, and the rest is an outline.
 */
import type { StackCounts } from '../../store/store.ts';
import { Box, type GrownBoxes, OTHER_BOX, type PruneLimits, type Weights, type ZoomPath } from './boxes.ts';
import { LargestFirst } from './largest-first.ts';
import { LinkedStacks } from './linked-stacks.ts';

/** Of the boxes that a zoomed picture keeps, so many at most are outside of what is looked at, and no more than a quarter. */
const OUTLINE_NODES = 4000;

/**
 * Keeps the largest boxes, by the sum of their events times the factors. None is larger than the one that it hangs below; of the
 * children of a box the largest are kept, and of equal ones the first by their hash, so that every answer cuts alike.
 *
 * @param carried stacks that are counted apart
 * @param limitsOf the events of each kind → how much to keep
 */
export function growBoxes(
  own: readonly StackCounts[],
  carried: readonly StackCounts[],
  limitsOf: (events: number, carriedEvents: number) => PruneLimits & Weights,
): GrownBoxes {
  const stacks = new LinkedStacks(own, carried);
  const { events, carriedEvents } = stacks;
  const { zoom, ...limits } = limitsOf(events, carriedEvents);
  const path = zoom && stacks.find(zoom);
  return new Grower(stacks, limits, path).grow();
}

/** A box that may be kept, and those of its siblings that are no larger. */
interface Candidate {
  box: Box;
  /** What it is chosen by. */
  total: number;
  siblings: readonly Box[];
  at: number;
}

class Grower {
  readonly #stacks: LinkedStacks;
  readonly #limits: PruneLimits & Weights;
  readonly #path: ZoomPath | undefined;
  readonly #queue = new LargestFirst<Candidate>();
  #foldedNodes = 0;
  #outline = 0;
  readonly #maxOutline: number;
  /** With the root, without the way to what is looked at. */
  #kept = 1;
  /** What the boxes inside are measured by: unknown until the zoomed box is reached. */
  #zoomTotal: number;
  readonly #total: number;
  #zoomed: Box | undefined;

  constructor(stacks: LinkedStacks, limits: PruneLimits & Weights, path: ZoomPath | undefined) {
    this.#stacks = stacks;
    this.#limits = limits;
    this.#path = path;
    this.#total = limits.factor * stacks.events + limits.carriedFactor * stacks.carriedEvents;
    this.#zoomTotal = this.#total;
    this.#maxOutline = Math.min(OUTLINE_NODES, limits.maxNodes >> 2);
  }

  grow(): GrownBoxes {
    const { events, carriedEvents, firstRoot } = this.#stacks;
    const root = new Box(-1, firstRoot, { weight: this.#total, events, carriedEvents });
    root.isInside = this.#path === undefined;
    root.wayDepth = 0;
    this.#keep(this.#expand(root));
    while (this.#kept < this.#limits.maxNodes) {
      const next = this.#queue.pop();
      if (next === undefined) break;
      this.#pushNext(next.siblings, next.at + 1);
      this.#keep(next.box);
    }
    const { frames } = this.#stacks;
    return { root, frames, foldedNodes: this.#foldedNodes, zoomed: this.#zoomed };
  }

  /** And then its only child, if that is as large: most stacks end in a long chain. */
  #keep(first: Box | undefined): void {
    for (let box = first; box !== undefined && this.#kept < this.#limits.maxNodes; box = this.#expand(box)) {
      if (!box.isInside && box.wayDepth < 0) this.#outline++;
      box.parent!.keep(box);
      if (box.wayDepth < 0) this.#kept++;
      this.#foldedNodes--;
    }
  }

  /** @returns a child that is to be kept at once */
  #expand(box: Box): Box | undefined {
    const path = this.#path;
    const isZoomed = path !== undefined && box.wayDepth === path.functions.length;
    if (isZoomed) {
      box.isInside = path.without === 0;
      this.#zoomed = box;
      this.#zoomTotal = box.weight;
    }
    const children = this.#childrenOf(box);
    this.#foldedNodes += children.count;
    const [only] = children.boxes;
    if (isZoomed && path.without > 0) this.#expandRest(box, children.boxes, path.without);
    else if (children.count === 1 && only?.weight === box.weight && this.#isWanted(only)) return only;
    else this.#pushNext(children.boxes, 0);
    return undefined;
  }

  /** The largest children stay as they are, without what is below them; the others have the picture. */
  #expandRest(box: Box, children: readonly Box[], without: number): void {
    box.kept = children.slice(0, without);
    this.#foldedNodes -= box.kept.length;
    for (const child of box.kept) this.#foldedNodes += this.#childrenOf(child).count;
    const left = (of: 'weight' | 'events' | 'carriedEvents', own: number): number =>
      box.kept.reduce((rest, child) => rest - child[of], box[of] - own);
    const { factor, carriedFactor } = this.#limits;
    const rest = new Box(
      OTHER_BOX,
      0,
      {
        weight: left('weight', factor * box.self + carriedFactor * box.carriedSelf),
        events: left('events', box.self),
        carriedEvents: left('carriedEvents', box.carriedSelf),
      },
      box,
    );
    if (rest.events + rest.carriedEvents <= 0) return;
    rest.isInside = true;
    box.rest = rest;
    this.#zoomed = rest;
    this.#zoomTotal = rest.weight;
    const others = children.slice(box.kept.length);
    for (const other of others) other.parent = rest;
    this.#pushNext(others, 0);
  }

  /** The sibling at a place, if it is large enough: those behind it are smaller. */
  #pushNext(siblings: readonly Box[], at: number): void {
    const box = siblings[at];
    if (box === undefined || !this.#isWanted(box)) return;
    const total = box.wayDepth >= 0 ? Number.POSITIVE_INFINITY : this.#shareOf(box);
    this.#queue.push({ box, total, siblings, at });
  }

  #isWanted(box: Box): boolean {
    box.isInside ||= box.parent!.isInside;
    if (box.wayDepth >= 0) return true;
    return (
      (box.isInside || this.#outline < this.#maxOutline) && this.#shareOf(box) >= this.#limits.minFraction
    );
  }

  #shareOf({ weight, isInside }: Box): number {
    return weight / (isInside ? this.#zoomTotal : this.#total);
  }

  /** What leads to the zoomed box first, then the largest. Those of stores' own remainders are counted only. */
  #childrenOf(box: Box): { boxes: Box[]; count: number } {
    const { factor, carriedFactor, minFraction } = this.#limits;
    const { frames } = this.#stacks;
    // Most children are too small to be seen: nothing is made of them.
    const least = minFraction * (box.isInside ? this.#zoomTotal : this.#total);
    const isWay = this.#path !== undefined && box.wayDepth >= 0;
    const isZoomed = isWay && box.wayDepth === this.#path!.functions.length;
    const boxes: Box[] = [];
    const count = this.#stacks.takeChildren(box.node, (func, node, events, carriedEvents) => {
      const weight = factor * events + carriedFactor * carriedEvents;
      box.self -= events;
      box.carriedSelf -= carriedEvents;
      const leadsOn = isWay && this.#path!.functions[box.wayDepth] === func;
      if (frames[func]!.kind === 'other' || !(weight >= least || leadsOn || isZoomed)) return;
      const child = new Box(func, node, { weight, events, carriedEvents }, box);
      if (leadsOn) child.wayDepth = box.wayDepth + 1;
      boxes.push(child);
    });
    if (boxes.length > 1) boxes.sort((a, b) => this.#compare(a, b));
    return { boxes, count };
  }

  #compare(a: Box, b: Box): number {
    return b.wayDepth - a.wayDepth || b.weight - a.weight || this.#stacks.orderOf(a.frame, b.frame);
  }
}
