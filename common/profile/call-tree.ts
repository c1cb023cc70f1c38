/** The stacks of profiles as one tree of names, each path once: what is said of stacks is said of its nodes. */
import { frameNames } from './frame-name.ts';
import type { Profile } from './profile.ts';
import { ROOT, StackTree } from './stack-tree.ts';

/** Samples of one profile by node of the tree: those that ended there, and those that came by. */
export interface NodeCounts {
  self: Float64Array;
  total: Float64Array;
  /** All samples, those without frames too. */
  samples: number;
}

/** A path is written out up to that many frames, else its ends. */
const MAX_PATH = 256;

export class CallTree {
  readonly #tree = new StackTree();
  readonly #names: string[] = [];
  readonly #ids = new Map<string, number>();
  readonly #decorate: (name: string) => string;

  constructor(decorate: (name: string) => string) {
    this.#decorate = decorate;
  }

  /** Nodes are numbered from 1, callers before what they call; 0 is above all roots. */
  get nodeCount(): number {
    return this.#tree.nodeCount;
  }

  nameOf(node: number): string {
    return this.#names[this.#tree.location(node)]!;
  }

  callerOf(node: number): number {
    return this.#tree.caller(node);
  }

  /** `main();work()`, the root first. */
  pathOf(node: number): string {
    const path = this.#tree.path(node);
    const names = Array.from(path, (name) => this.#names[name]!).reverse();
    if (names.length <= MAX_PATH) return names.join(';');
    const half = MAX_PATH >> 1;
    return [...names.slice(0, half), `… ${names.length - MAX_PATH} more …`, ...names.slice(-half)].join(';');
  }

  /** Adds a profile's stacks. The counts are as long as the tree is then. */
  add(profile: Profile): NodeCounts {
    const locations = new Map<number, readonly number[]>();
    const namesAt = (location: number): readonly number[] => {
      let names = locations.get(location);
      if (!names) {
        names = frameNames(profile, location).map((name) => this.#idOf(this.#decorate(name)));
        locations.set(location, names);
      }
      return names;
    };
    const nodes = profile.stacks.map((stack) => this.#enter(stack, namesAt));
    const self = new Float64Array(this.nodeCount);
    let samples = 0;
    for (const { stack, count } of profile.samples) {
      self[nodes[stack]!]! += count;
      samples += count;
    }
    const total = self.slice();
    for (let node = total.length - 1; node > ROOT; node--) total[this.#tree.caller(node)]! += total[node]!;
    return { self, total, samples };
  }

  /** @param stack leaf first, as are the names of a location */
  #enter(stack: Uint32Array, namesAt: (location: number) => readonly number[]): number {
    let node = ROOT;
    for (let i = stack.length - 1; i >= 0; i--) {
      const names = namesAt(stack[i]!);
      for (let j = names.length - 1; j >= 0; j--) node = this.#tree.enter(node, names[j]!);
    }
    return node;
  }

  #idOf(name: string): number {
    let id = this.#ids.get(name);
    if (id === undefined) {
      id = this.#names.push(name) - 1;
      this.#ids.set(name, id);
    }
    return id;
  }
}
