/** The stacks of profiles as one tree of names, each path once: what is said of stacks is said of its nodes. */
import { frameNames } from '../model/frame-name.ts';
import type { Profile } from '../model/profile.ts';
import { ROOT, StackTree } from '../model/stack-tree.ts';

/** Values of one profile by node of the tree: of samples that ended there, and of those that came by. */
export interface NodeValues {
  self: Float64Array;
  total: Float64Array;
  /** Of all samples, those without frames too. */
  sum: number;
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

  /** Adds a profile's stacks. The values are as long as the tree is then. */
  add(profile: Profile): NodeValues {
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
    let sum = 0;
    for (const { stack, value } of profile.samples) {
      self[nodes[stack]!]! += value;
      sum += value;
    }
    const total = self.slice();
    for (let node = total.length - 1; node > ROOT; node--) total[this.#tree.caller(node)]! += total[node]!;
    return { self, total, sum };
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
