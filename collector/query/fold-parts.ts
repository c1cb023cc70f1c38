/**
 * Stacks of a window, within the memory that its collector has. Days of a busy machine have more different stacks than fit,
 * and most were seen once: where there are too many, the ends of those that no picture could show become "(other)".
 */

import type { StackCounts } from '../store/store.ts';
import { OTHER } from '../store/trees/frames.ts';
import { sumSubtrees } from '../store/trees/sum-subtrees.ts';
import { DEFAULT_LIMITS } from './flame/flame-tree.ts';

/** Of all parts: a node takes some 40 bytes while a picture is made. */
const MAX_NODES = 4_000_000;
/** So many times smaller than the smallest box that is shown, over all parts. */
const MARGIN = 4;

/**
 * Takes the parts of a window. Small windows stay as they are; of large ones the counts are right but for 1/80,000 of all
 * samples, which is then in the "(other)" of a function above.
 */
export class FoldingParts {
  parts: StackCounts[] = [];
  readonly #minimum: number;
  readonly #maxNodes: number;
  #nodes = 0;
  /** Something is in "(other)" that had boxes of its own. */
  isFolding = false;

  /** @param samples of all `partCount` parts, or of what is looked at in them */
  constructor(samples: number, partCount: number, maxNodes = MAX_NODES) {
    this.#minimum = (samples * DEFAULT_LIMITS.minFraction) / MARGIN / partCount;
    this.#maxNodes = maxNodes;
  }

  add(part: StackCounts): void {
    this.#push(this.isFolding ? foldPart(part, this.#minimum) : part);
    if (this.isFolding || this.#nodes <= this.#maxNodes || this.#minimum <= 1) return;
    this.isFolding = true;
    this.#nodes = 0;
    const parts = this.parts;
    this.parts = [];
    for (const one of parts) this.#push(foldPart(one, this.#minimum));
  }

  #push(part: StackCounts): void {
    this.parts.push(part);
    this.#nodes += part.parents.length;
  }
}

/** Nodes with fewer events than `minimum` become one child of the node above, of kind `other`. */
function foldPart(part: StackCounts, minimum: number): StackCounts {
  const { parents, nodeFrames, selfCounts } = part;
  const totals = sumSubtrees(parents, selfCounts);
  const isKept = (node: number): boolean => node === 0 || totals[node]! >= minimum;
  let kept = 0;
  for (let node = 0; node < parents.length; node++) if (isKept(node)) kept++;
  const ids = new Uint32Array(parents.length);
  const folded = new Float64Array(kept);
  const out = {
    parents: new Uint32Array(2 * kept),
    nodeFrames: new Uint32Array(2 * kept),
    selfCounts: new Float64Array(2 * kept),
  };
  let size = 0;
  for (let node = 0; node < parents.length; node++) {
    const parent = ids[parents[node]!]!;
    if (isKept(node)) {
      ids[node] = size;
      out.parents[size] = parent;
      out.nodeFrames[size] = nodeFrames[node]!;
      out.selfCounts[size++] = selfCounts[node]!;
    } else if (node > 0 && isKept(parents[node]!)) {
      folded[parent]! += totals[node]!;
    }
  }
  for (const [parent, events] of folded.entries()) {
    if (events === 0) continue;
    out.parents[size] = parent;
    out.nodeFrames[size] = part.frames.length;
    out.selfCounts[size++] = events;
  }
  return {
    frames: [...part.frames, OTHER],
    parents: out.parents.slice(0, size),
    nodeFrames: out.nodeFrames.slice(0, size),
    selfCounts: out.selfCounts.slice(0, size),
  };
}
