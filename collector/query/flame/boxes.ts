/** The boxes that a flame graph is made of, while it grows. */
import type { ZoomKey } from '../../../common/flame/path-key.ts';
import type { Frame } from '../../store/store.ts';

export interface PruneLimits {
  /** A node whose share of all samples, or of those in the zoomed box, is below this is folded. */
  minFraction: number;
  /** At most so many nodes are kept, the largest ones; the remainder nodes come on top. */
  maxNodes: number;
  /** The box that is looked at; undefined: all. */
  zoom?: ZoomKey | undefined;
}

/** What an event of each kind weighs where boxes are compared. */
export interface Weights {
  factor: number;
  carriedFactor: number;
}

/** Where the box that is looked at lies, in the functions of one answer. */
export interface ZoomPath {
  /** From the process inwards. */
  functions: readonly number[];
  /** See ZoomKey. */
  without: number;
}

/** In place of a function: the box of all that was folded below another. */
export const OTHER_BOX = -2;

/** Most boxes have no child that is kept, or one. */
const NONE: readonly Box[] = [];

/** Events are those of its own and of what is below it too. */
export class Box {
  /** Index into the frames; -1: the root; or {@link OTHER_BOX}. */
  readonly frame: number;
  parent: Box | undefined;
  /** What it is compared by. */
  readonly weight: number;
  readonly events: number;
  readonly carriedEvents: number;
  /** Of its own: known once its children are. */
  self: number;
  carriedSelf: number;
  /** The first of its nodes. */
  readonly node: number;
  kept: readonly Box[] = NONE;
  /** Of what was folded, where that is looked at. */
  rest: Box | undefined;
  /** Part of what is looked at. */
  isInside = false;
  /** Functions from the root to it where it leads to what is looked at, or is that; else -1. */
  wayDepth = -1;

  constructor(
    frame: number,
    node: number,
    counts: Pick<Box, 'weight' | 'events' | 'carriedEvents'>,
    parent?: Box,
  ) {
    this.frame = frame;
    this.node = node;
    this.weight = counts.weight;
    this.events = counts.events;
    this.carriedEvents = counts.carriedEvents;
    const isRest = frame === OTHER_BOX;
    this.self = isRest ? 0 : counts.events;
    this.carriedSelf = isRest ? 0 : counts.carriedEvents;
    this.parent = parent;
  }

  keep(child: Box): void {
    if (this.kept === NONE) this.kept = [child];
    else (this.kept as Box[]).push(child);
  }
}

export interface GrownBoxes {
  root: Box;
  frames: readonly Frame[];
  /** Children of kept boxes that were not kept. */
  foldedNodes: number;
  /** What is looked at, where that was asked for and is there. */
  zoomed: Box | undefined;
}
