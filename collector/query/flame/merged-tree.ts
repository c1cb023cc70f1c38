/** Stacks of several parts as one tree, whole: for what looks at every stack. A flame graph needs less, see flame-tree.ts. */

import type { Frame, StackCounts } from '../../store/store.ts';
import { FrameTable } from '../../store/trees/frame-table.ts';
import { StackTree } from '../../store/trees/stack-tree.ts';
import { sumSubtrees } from '../../store/trees/sum-subtrees.ts';

/** All parts as one tree; node 0 is the root, a parent's id is less than its children's. */
export interface MergedTree {
  frames: Frame[];
  parents: Uint32Array;
  nodeFrames: Uint32Array;
  selfCounts: Float64Array;
  totals: Float64Array;
}

/** Functions without duplicates: lines are taken together, and so are those that several parts have. */
export class FunctionTable {
  readonly #table = new FrameTable();
  /** Parts that were loaded from disk share their frames. */
  readonly #known = new Map<Frame, number>();

  get frames(): Frame[] {
    return this.#table.frames;
  }

  /** Ids of a part's frames, found out once each. */
  idsOf(frames: readonly Frame[]): (frame: number) => number {
    const ids = new Int32Array(frames.length).fill(-1);
    return (frame) => {
      if (ids[frame] === -1) ids[frame] = this.#idOf(frames[frame]!);
      return ids[frame]!;
    };
  }

  #idOf(frame: Frame): number {
    const id = this.#known.get(frame) ?? this.#table.intern(frame);
    this.#known.set(frame, id);
    return id;
  }
}

/** Given `nodeMaps`, an entry per part, each becomes the merged node of each of the part's nodes. */
export function mergeParts(parts: readonly StackCounts[], nodeMaps?: Uint32Array[]): MergedTree {
  const table = new FunctionTable();
  const tree = new StackTree(Math.max(0, ...parts.map(({ parents }) => parents.length)));
  let selfCounts = new Float64Array(1024);
  for (const [index, part] of parts.entries()) {
    const totals = sumSubtrees(part.parents, part.selfCounts);
    const idOf = table.idsOf(part.frames);
    const nodes = new Uint32Array(part.parents.length);
    if (nodeMaps !== undefined) nodeMaps[index] = nodes;
    selfCounts[0]! += part.selfCounts[0]!;
    for (let node = 1; node < nodes.length; node++) {
      if (totals[node] === 0) continue;
      const merged = tree.child(nodes[part.parents[node]!]!, idOf(part.nodeFrames[node]!));
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

function enlarged(array: Float64Array<ArrayBuffer>): Float64Array<ArrayBuffer> {
  const larger = new Float64Array(array.length * 2);
  larger.set(array);
  return larger;
}
