/**
 * What V8's own profiler writes: `.cpuprofile` of `node --cpu-prof` and of DevTools, and `ProfileChunk` events in
 * Chrome's traces: https://chromedevtools.github.io/devtools-protocol/tot/Profiler/#type-Profile
 * A sample lasts until the next. The lines are those that functions begin at.
 */
import { type Json, list, natural, object, text } from '../model/json.ts';
import type { Profile } from '../model/profile.ts';
import { type Owner, ProfileBuilder } from '../model/profile-builder.ts';
import { cpuType } from '../model/profile-type.ts';
import type { ReadBudget } from '../model/read-limits.ts';
import { ROOT } from '../model/stack-tree.ts';

/** Above all stacks. */
const TOP = '(root)';
/** Nothing ran. */
const IDLE = '(idle)';
/** In parentheses V8 names what is none of JavaScript's functions. */
const NO_FUNCTION = /^\(.*\)$/;

export const isCpuProfile = (value: unknown): boolean => {
  const { nodes, samples } = object(value);
  return Array.isArray(nodes) && Array.isArray(samples) && 'callFrame' in object(nodes[0]);
};

/** @throws Error where the file contradicts its format */
export function readCpuProfile(value: unknown, budget?: ReadBudget): Profile {
  const builder = newCpuBuilder(budget);
  const tree = new CallTree(builder);
  const { nodes, samples, timeDeltas, startTime, endTime } = object(value);
  for (const node of list(nodes)) {
    const { id, parent, callFrame, children } = object(node);
    tree.add(id, callFrame, parent);
    for (const child of list(children)) tree.setCaller(child, id);
  }
  const lasted = list(timeDeltas).map(Number);
  const all = lasted.reduce((sum, delta) => sum + delta, 0);
  lasted.push(natural(endTime) - natural(startTime) - all);
  tree.addSamples({ process: 'V8', pid: 0, tid: 0, thread: '' }, list(samples), lasted);
  return builder.profile;
}

/** Its values are the nanoseconds that a stack was seen for. */
export function newCpuBuilder(budget?: ReadBudget): ProfileBuilder {
  const builder = new ProfileBuilder(budget);
  builder.profile.type = { ...cpuType(1n), sampleType: { type: 'cpu', unit: 'nanoseconds' } };
  return builder;
}

/** The tree of calls of one V8, whose nodes come in any order and are named by numbers of its own. */
export class CallTree {
  readonly #builder: ProfileBuilder;
  readonly #nodes = new Map<number, { callFrame: Json; caller: number | undefined }>();
  /** Nodes of the profile's tree, by ID. */
  readonly #entered = new Map<number, number>();

  constructor(builder: ProfileBuilder) {
    this.#builder = builder;
  }

  add(id: unknown, callFrame: unknown, caller?: unknown): void {
    const known = this.#nodes.get(Number(id))?.caller;
    const named = caller === undefined ? known : Number(caller);
    this.#nodes.set(Number(id), { callFrame: object(callFrame), caller: named });
  }

  /** Before or after either of them is added. */
  setCaller(id: unknown, caller: unknown): void {
    const callFrame = this.#nodes.get(Number(id))?.callFrame ?? {};
    this.#nodes.set(Number(id), { callFrame, caller: Number(caller) });
  }

  /**
   * @param samples IDs of nodes
   * @param lasted microseconds from the sample before (or the start) to each, and to the end after the last
   */
  addSamples(owner: Owner, samples: readonly unknown[], lasted: readonly unknown[]): void {
    for (const [i, sample] of samples.entries()) {
      const id = Number(sample);
      const value = Math.round(Number(lasted[i + 1] ?? 0) * 1000);
      if (this.#nameOf(id) === IDLE || !Number.isSafeInteger(value) || value <= 0) continue;
      this.#builder.add(this.#builder.stackAt(this.#enter(id)), owner, value);
    }
  }

  #nameOf(id: number): string {
    return text(this.#nodes.get(id)?.callFrame['functionName']);
  }

  #enter(leaf: number): number {
    const path: number[] = [];
    let above: number | undefined = leaf;
    while (above !== undefined && !this.#entered.has(above)) {
      const found = this.#nodes.get(above);
      if (!found) throw new Error(`node ${above} is not among the ${this.#nodes.size} of its calls`);
      if (path.length >= this.#nodes.size) throw new Error(`node ${leaf} of its calls is its own caller`);
      path.push(above);
      above = found.caller;
    }
    let node = above === undefined ? ROOT : this.#entered.get(above)!;
    for (const id of path.reverse()) {
      if (this.#nameOf(id) !== TOP) node = this.#builder.enter(node, this.#location(id));
      this.#entered.set(id, node);
    }
    return node;
  }

  #location(id: number): number {
    const { functionName, url, lineNumber, columnNumber } = this.#nodes.get(id)!.callFrame;
    const name = text(functionName) || '(anonymous)';
    return this.#builder.location({
      name,
      frameType: NO_FUNCTION.test(name) && name !== '(anonymous)' ? 'native' : 'v8js',
      file: text(url).replace(/^file:\/\//, ''),
      // both count from 0, and are -1 where there is none
      line: natural(Number(lineNumber) + 1),
      column: natural(Number(columnNumber) + 1),
    });
  }
}
