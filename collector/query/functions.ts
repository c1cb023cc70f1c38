/** Views by function, over all stacks it occurs in. */
import { StackTree } from '../store/stack-tree.ts';
import type { Frame, StackCounts } from '../store/store.ts';
import { type MergedTree, mergeParts } from './flame-tree.ts';

export interface FunctionCount extends Frame {
  /** Events in the function itself, and in it or what it called: a recursion counts once. */
  self: number;
  total: number;
}

/** By what stacks are grouped by: events in it, and in it or below. */
export interface Sums {
  self: Float64Array;
  total: Float64Array;
}

/** The most self first. */
export function topFunctions(parts: readonly StackCounts[]): FunctionCount[] {
  const merged = mergeParts(parts);
  return listCounts(merged.frames, sumGroups(merged, merged.nodeFrames, merged.frames.length)).sort(
    (a, b) => b.self - a.self || b.total - a.total || (a.name < b.name ? -1 : 1),
  );
}

const listCounts = (frames: readonly Frame[], { self, total }: Sums): FunctionCount[] =>
  frames
    .map((frame, id) => ({ ...frame, self: self[id]!, total: total[id]! }))
    .filter((count) => count.total > 0 && count.kind !== 'process');

/** Sums over nodes that belong together; a stack that holds a group several times counts once. */
export function sumGroups(
  { parents, selfCounts, totals }: Pick<MergedTree, 'parents' | 'selfCounts' | 'totals'>,
  groups: Uint32Array,
  groupCount: number,
): Sums {
  const self = new Float64Array(groupCount);
  const total = new Float64Array(groupCount);
  const firstChild = new Uint32Array(parents.length);
  const sibling = new Uint32Array(parents.length);
  for (let node = parents.length - 1; node > 0; node--) {
    sibling[node] = firstChild[parents[node]!]!;
    firstChild[parents[node]!] = node;
  }
  // Depth first without a call stack: how often each group is on the path tells recursion.
  const onPath = new Uint32Array(groupCount);
  let node = firstChild[0]!;
  while (node !== 0) {
    const group = groups[node]!;
    self[group]! += selfCounts[node]!;
    if (onPath[group]!++ === 0) total[group]! += totals[node]!;
    let next = firstChild[node]!;
    while (next === 0 && node !== 0) {
      onPath[groups[node]!]!--;
      next = sibling[node]!;
      if (next === 0) {
        node = parents[node]!;
        if (node === 0) break;
      }
    }
    node = next;
  }
  return { self, total };
}

export interface Sandwich {
  /** Events whose stack has the function. */
  samples: number;
  /** Below the root the function, then its callers up to the process. */
  callers: StackCounts;
  /** Below the root the function, then what it called. */
  callees: StackCounts;
}

/** Who calls the functions of a name, and what they call. In a recursion the outermost call counts. */
export function callersAndCallees(parts: readonly StackCounts[], name: string): Sandwich {
  const merged = mergeParts(parts);
  const { frames, parents, nodeFrames, selfCounts, totals } = merged;
  const isWanted = frames.map((frame) => frame.name === name && frame.kind !== 'process');
  const callers = new CountedTree(frames);
  const callees = new CountedTree(frames);
  const copies = new Uint32Array(parents.length);
  let samples = 0;
  for (let node = 1; node < parents.length; node++) {
    const frame = nodeFrames[node]!;
    const above = copies[parents[node]!]!;
    if (above !== 0) {
      copies[node] = callees.add(above, frame, selfCounts[node]!);
    } else if (isWanted[frame]) {
      samples += totals[node]!;
      copies[node] = callees.add(0, frame, selfCounts[node]!);
      let caller = 0;
      for (let at = node; at !== 0; at = parents[at]!) {
        caller = callers.add(caller, nodeFrames[at]!, parents[at] === 0 ? totals[node]! : 0);
      }
    }
  }
  return { samples, callers: callers.finish(), callees: callees.finish() };
}

class CountedTree {
  readonly #frames: readonly Frame[];
  readonly #tree = new StackTree();
  readonly #counts: number[] = [0];

  constructor(frames: readonly Frame[]) {
    this.#frames = frames;
  }

  add(parent: number, frame: number, count: number): number {
    const node = this.#tree.child(parent, frame);
    this.#counts[node] = (this.#counts[node] ?? 0) + count;
    return node;
  }

  finish(): StackCounts {
    const { parents, frames, size } = this.#tree;
    return {
      frames: this.#frames,
      parents: parents.subarray(0, size),
      nodeFrames: frames.subarray(0, size),
      selfCounts: Float64Array.from(this.#counts),
    };
  }
}

export interface FunctionChange extends Frame {
  baseSelf: number;
  baseTotal: number;
  self: number;
  total: number;
  /** Share of its own samples now less the share in the base, in [-1, 1]. */
  selfShareChange: number;
}

/** Functions of two windows, those whose share of the samples changed most first. */
export function compareFunctions(
  base: { parts: readonly StackCounts[]; samples: number },
  now: { parts: readonly StackCounts[]; samples: number },
): FunctionChange[] {
  const changes = new Map<string, FunctionChange>();
  const change = ({ name, file, mapping, kind }: Frame): FunctionChange => {
    const key = [kind, name, file, mapping].join('\0');
    let entry = changes.get(key);
    if (entry === undefined) {
      entry = { name, file, mapping, kind, baseSelf: 0, baseTotal: 0, self: 0, total: 0, selfShareChange: 0 };
      changes.set(key, entry);
    }
    return entry;
  };
  for (const count of topFunctions(base.parts)) {
    Object.assign(change(count), { baseSelf: count.self, baseTotal: count.total });
  }
  for (const count of topFunctions(now.parts)) {
    Object.assign(change(count), { self: count.self, total: count.total });
  }
  const share = (count: number, of: number): number => (of === 0 ? 0 : count / of);
  for (const entry of changes.values()) {
    entry.selfShareChange = share(entry.self, now.samples) - share(entry.baseSelf, base.samples);
  }
  return [...changes.values()].sort(
    (a, b) => Math.abs(b.selfShareChange) - Math.abs(a.selfShareChange) || (a.name < b.name ? -1 : 1),
  );
}
