/** Views by function, over all stacks it occurs in. */

import type { Frame, StackCounts, SummedFunctions, Sums } from '../store/store.ts';
import { compareFrames } from '../store/trees/frames.ts';
import { StackTree } from '../store/trees/stack-tree.ts';
import { sumGroups } from '../store/trees/sum-groups.ts';
import { sumSubtrees } from '../store/trees/sum-subtrees.ts';
import { FunctionTable, mergeParts } from './flame/merged-tree.ts';

export interface FunctionCount extends Frame {
  /** Events in the function itself, and in it or what it called: a recursion counts once. */
  self: number;
  total: number;
}

export interface Ranking<T> {
  /** How many functions there are. */
  count: number;
  /** The first of them. */
  functions: T[];
}

/** Those with the largest count of the kind first. */
export function topFunctions(
  parts: readonly StackCounts[],
  limit = Number.POSITIVE_INFINITY,
  sort: keyof Sums = 'self',
): Ranking<FunctionCount> {
  const sums = new FunctionSums();
  for (const part of parts) sums.add(part);
  return sums.rank(limit, sort);
}

/** Events by function, part by part: none is kept. */
export class FunctionSums {
  readonly #table: FunctionTable;
  sums: Sums = { self: new Float64Array(0), total: new Float64Array(0) };

  /** @param table functions that it gets to know later are missing in the sums */
  constructor(table = new FunctionTable()) {
    this.#table = table;
  }

  add({ parents, nodeFrames, selfCounts, frames }: StackCounts): void {
    const totals = sumSubtrees(parents, selfCounts);
    const idOf = this.#table.idsOf(frames);
    const groups = nodeFrames.map((frame, node) => (node > 0 && totals[node]! > 0 ? idOf(frame) : 0));
    const ofPart = sumGroups({ parents, selfCounts, totals }, groups, this.#table.frames.length);
    this.#take(ofPart);
  }

  /** Of the processes whose names pass. */
  addSummed(
    { frames, processes, functions, sums: { self, total } }: SummedFunctions,
    isWanted: (process: string) => boolean,
  ): void {
    const idOf = this.#table.idsOf(frames);
    const isKnown = new Map<number, boolean>();
    const ids = new Int32Array(functions.length).fill(-1);
    for (const [row, process] of processes.entries()) {
      if (!isKnown.has(process)) isKnown.set(process, isWanted(frames[process]!.name));
      if (isKnown.get(process)) ids[row] = idOf(functions[row]!);
    }
    const count = this.#table.frames.length;
    const ofPart = { self: new Float64Array(count), total: new Float64Array(count) };
    for (const [row, id] of ids.entries()) {
      if (id === -1) continue;
      ofPart.self[id]! += self[row]!;
      ofPart.total[id]! += total[row]!;
    }
    this.#take(ofPart);
  }

  #take(ofPart: Sums): void {
    for (const key of ['self', 'total'] as const)
      for (const [id, sum] of this.sums[key].entries()) ofPart[key][id]! += sum;
    this.sums = ofPart;
  }

  /** Those with the largest count of the kind first. */
  rank(limit: number, sort: keyof Sums): Ranking<FunctionCount> {
    const { frames } = this.#table;
    const { self, total } = this.sums;
    const keys = sort === 'self' ? [self, total] : [total, self];
    return rankFunctions(frames, { isCounted: (id) => total[id]! > 0, keys, limit }, (id) => ({
      ...frames[id]!,
      self: self[id]!,
      total: total[id]!,
    }));
  }
}

/** By function, as the table knows it. */
function sumFunctions(parts: readonly StackCounts[], table: FunctionTable): Sums {
  const sums = new FunctionSums(table);
  for (const part of parts) sums.add(part);
  return sums.sums;
}

interface Order {
  isCounted(id: number): boolean;
  /** A number for each frame: the largest come first, by the second where the first are the same, then by name, mapping and file. */
  keys: readonly Float64Array[];
  limit: number;
}

/** Names are compared, and entries made, only of those that are shown: an hour of a busy machine has 100,000 functions. */
function rankFunctions<T>(
  frames: readonly Frame[],
  { isCounted, keys, limit }: Order,
  describe: (id: number) => T,
): Ranking<T> {
  const byKeys = (a: number, b: number): number => {
    for (const key of keys) if (key[a] !== key[b]) return key[b]! - key[a]!;
    return 0;
  };
  const ids = Uint32Array.from(frames.keys())
    .filter((id) => frames[id]!.kind !== 'process' && isCounted(id))
    .sort(byKeys);
  let end = Math.min(limit, ids.length);
  while (end > 0 && end < ids.length && byKeys(ids[end - 1]!, ids[end]!) === 0) end++;
  const shown = [...ids.subarray(0, end)].sort(
    (a, b) => byKeys(a, b) || compareFrames(frames[a]!, frames[b]!),
  );
  return { count: ids.length, functions: shown.slice(0, limit).map(describe) };
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
  limit = Number.POSITIVE_INFINITY,
): Ranking<FunctionChange> {
  const table = new FunctionTable();
  const before = sumFunctions(base.parts, table);
  const after = sumFunctions(now.parts, table);
  const { frames } = table;
  const of = (counts: Float64Array, id: number): number => counts[id] ?? 0;
  const share = (count: number, of: number): number => (of === 0 ? 0 : count / of);
  const change = Float64Array.from(
    frames,
    (_, id) => share(of(after.self, id), now.samples) - share(of(before.self, id), base.samples),
  );
  const isCounted = (id: number): boolean => of(after.total, id) > 0 || of(before.total, id) > 0;
  return rankFunctions(frames, { isCounted, keys: [change.map(Math.abs)], limit }, (id) => ({
    ...frames[id]!,
    baseSelf: of(before.self, id),
    baseTotal: of(before.total, id),
    self: of(after.self, id),
    total: of(after.total, id),
    selfShareChange: change[id]!,
  }));
}
