/** Stacks of several parts as one forest, in which the children of many nodes are summed by their function. */
import { type PathHash, ROOT_HASH, type ZoomKey } from '../../../common/flame/path-key.ts';
import type { Frame, StackCounts } from '../../store/store.ts';
import type { ZoomPath } from './boxes.ts';
import { FunctionTable } from './merged-tree.ts';
import { frameHash, pathHashes } from './path-hashes.ts';

export class LinkedStacks {
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
  /** The roots of all parts, as members of one box. */
  firstRoot = 0;
  events = 0;
  carriedEvents = 0;
  /** By function, of the box at work; 0 between two. */
  readonly #heads: Uint32Array;
  readonly #sums: { own: Float64Array; carried: Float64Array };
  /** The functions of that box's children. */
  readonly #found: Uint32Array;
  /** By the first of their nodes. */
  readonly #parts: [start: number, part: StackCounts][] = [];

  constructor(own: readonly StackCounts[], carried: readonly StackCounts[]) {
    const nodes = [...own, ...carried].reduce((sum, { parents }) => sum + parents.length, 1);
    this.#totals = new Float64Array(nodes);
    this.#functions = new Uint32Array(nodes);
    this.#firstChild = new Uint32Array(nodes);
    this.#next = new Uint32Array(nodes);
    for (const part of own) this.events += this.#add(part);
    this.#carriedFrom = this.#size;
    for (const part of carried) this.carriedEvents += this.#add(part);
    const functions = this.#table.frames.length;
    this.#heads = new Uint32Array(functions);
    this.#found = new Uint32Array(functions);
    this.#sums = { own: new Float64Array(functions), carried: new Float64Array(functions) };
  }

  get frames(): readonly Frame[] {
    return this.#table.frames;
  }

  #add(part: StackCounts): number {
    const { parents, nodeFrames, selfCounts, frames } = part;
    const [totals, functions, firstChild, next] = [
      this.#totals,
      this.#functions,
      this.#firstChild,
      this.#next,
    ];
    const start = this.#size;
    this.#parts.push([start, part]);
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
    next[start] = this.firstRoot;
    this.firstRoot = start;
    this.#size += parents.length;
    return totals[start]!;
  }

  /** The way to a box, before any children were taken. Undefined where no stack has it. */
  find(zoom: ZoomKey): ZoomPath | undefined {
    if (zoom.low === ROOT_HASH.low && zoom.high === ROOT_HASH.high)
      return { functions: [], without: zoom.without };
    for (const [start, part] of this.#parts) {
      const { low, high } = pathHashes(part);
      for (let node = 1; node < low.length; node++) {
        if (low[node] !== zoom.low || high[node] !== zoom.high || this.#totals[start + node] === 0) continue;
        const functions: number[] = [];
        for (let at = node; at !== 0; at = part.parents[at]!) functions.push(this.#functions[start + at]!);
        return { functions: functions.reverse(), without: zoom.without };
      }
    }
    return undefined;
  }

  /** An order of functions that is the same in every answer. */
  orderOf(a: number, b: number): number {
    const [first, second] = [a, b].map((func) => frameHash(this.#table.frames[func]!)) as [
      PathHash,
      PathHash,
    ];
    return first.low - second.low || first.high - second.high;
  }

  /**
   * Sums the children of a box, given its first node, by their function. Each node may be taken once.
   *
   * @returns how many functions its children have
   */
  takeChildren(
    first: number,
    take: (func: number, node: number, events: number, carriedEvents: number) => void,
  ): number {
    const count = this.#sumChildren(first);
    const { own, carried } = this.#sums;
    for (let i = 0; i < count; i++) {
      const func = this.#found[i]!;
      take(func, this.#heads[func]!, own[func]!, carried[func]!);
      this.#heads[func] = 0;
      own[func] = 0;
      carried[func] = 0;
    }
    return count;
  }

  #sumChildren(first: number): number {
    let count = 0;
    const [totals, functions, firstChild, next] = [
      this.#totals,
      this.#functions,
      this.#firstChild,
      this.#next,
    ];
    const [heads, found] = [this.#heads, this.#found];
    const { own, carried } = this.#sums;
    for (let member = first; member !== 0; member = next[member]!) {
      for (let node = firstChild[member]!, after = 0; node !== 0; node = after) {
        after = next[node]!;
        const func = functions[node]!;
        if (heads[func] === 0) found[count++] = func;
        next[node] = heads[func]!;
        heads[func] = node;
        const events = node < this.#carriedFrom ? own : carried;
        events[func]! += totals[node]!;
      }
    }
    return count;
  }
}
