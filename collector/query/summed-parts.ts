/**
 * Pictures of long times from what stores summed before: reading each stack of ten million samples takes many seconds, and
 * nearly all are in boxes that nobody could see.
 */

import { processTest } from '../store/matcher.ts';
import type { Frame, SampleFilter, SamplePart, StackCounts, SummedStacks } from '../store/store.ts';
import { OTHER } from '../store/trees/frames.ts';
import { StackTree } from '../store/trees/stack-tree.ts';
import { sumSubtrees } from '../store/trees/sum-subtrees.ts';
import { LEAST_EVENTS } from '../store/trees/summed-tree.ts';
import { DEFAULT_LIMITS } from './flame/flame-tree.ts';
import type { FunctionSums } from './functions.ts';

/** What a box lacks is, over all parts, so many times less than the smallest box that is shown. */
const MARGIN = 2;
/** Less exact sums are taken where more nodes than this would have to be read. */
const MAX_NODES = 4_000_000;

export interface SumsRead {
  /** Of all parts that have sums, as one. */
  stacks: StackCounts;
  /** Of these nothing else has to be read. */
  parts: ReadonlySet<SamplePart>;
}

/**
 * Undefined where each stack has to be read, because the filter asks for more than processes, or because so few stacks are
 * wanted that sums would lack what could be seen.
 *
 * @param samples events of the parts that pass the filter, or of what is looked at in them
 * @param isExact what sums lack is missed, unless that is too much to read
 */
export async function readSums(
  parts: readonly SamplePart[],
  filter: SampleFilter,
  { samples, isExact = false }: { samples: number; isExact?: boolean },
  maxNodes = MAX_NODES,
): Promise<SumsRead | undefined> {
  const isWanted = processTest(filter.where);
  if (isWanted === undefined) return undefined;
  const summed = new Map<SamplePart, SummedStacks>();
  for (const part of parts) {
    const sums = part.summed?.(filter);
    if (sums !== undefined) summed.set(part, sums);
  }
  if (summed.size === 0) return undefined;
  const lost = samples * (DEFAULT_LIMITS.minFraction / MARGIN);
  const nodes = [...summed.values()].reduce((sum, each) => sum + each.nodes, 0);
  if ((isExact || summed.size * (LEAST_EVENTS - 1) > lost) && nodes <= maxNodes) return undefined;
  const minimum = Math.max(LEAST_EVENTS, Math.floor(lost / summed.size) + 1);
  const merger = new SumMerger();
  for (const sums of summed.values()) {
    const stacks = await sums.read(minimum);
    merger.add(filter.where.length === 0 ? stacks : onlyProcesses(stacks, isWanted));
  }
  return { stacks: merger.stacks, parts: new Set(summed.keys()) };
}

/** What a part has by function, exactly; false where its stacks have to be read. */
export async function takeFunctions(
  part: SamplePart,
  filter: SampleFilter,
  sums: Pick<FunctionSums, 'addSummed'>,
): Promise<boolean> {
  const isWanted = processTest(filter.where);
  if (isWanted === undefined) return false;
  const found = await part.summed?.(filter)?.functions?.();
  if (found === undefined) return false;
  sums.addSummed(found, isWanted);
  return true;
}

/** Takes sums one by one: what it holds grows with the boxes that are different. */
class SumMerger {
  readonly #tree = new StackTree();
  #selfCounts = new Float64Array(2 ** 16);
  #frames: readonly Frame[] = [];

  add({ parents, nodeFrames, selfCounts, frames }: StackCounts): void {
    if (frames !== this.#frames) this.#frames = union(this.#frames, frames);
    const totals = sumSubtrees(parents, selfCounts);
    const nodes = new Uint32Array(parents.length);
    for (let node = 1; node < nodes.length; node++) {
      if (totals[node] === 0) continue;
      const merged = this.#tree.child(nodes[parents[node]!]!, nodeFrames[node]!);
      nodes[node] = merged;
      if (merged >= this.#selfCounts.length) this.#enlarge();
      this.#selfCounts[merged]! += selfCounts[node]!;
    }
  }

  /** Views: nothing may be added any more. */
  get stacks(): StackCounts {
    const { parents, frames, size } = this.#tree;
    return {
      frames: this.#frames,
      parents: parents.subarray(0, size),
      nodeFrames: frames.subarray(0, size),
      selfCounts: this.#selfCounts.subarray(0, size),
    };
  }

  #enlarge(): void {
    const larger = new Float64Array(2 * this.#selfCounts.length);
    larger.set(this.#selfCounts);
    this.#selfCounts = larger;
  }
}

/** What the retention forgets meanwhile is in the first only. */
const union = (before: readonly Frame[], after: readonly Frame[]): readonly Frame[] =>
  before.length === 0 ? after : after.map((frame, id) => (frame === OTHER ? (before[id] ?? frame) : frame));

/** Without the events of other processes. */
function onlyProcesses(stacks: StackCounts, isWanted: (name: string) => boolean): StackCounts {
  const { parents, nodeFrames, frames, selfCounts } = stacks;
  const wanted = new Uint8Array(parents.length);
  const kept = new Float64Array(parents.length);
  for (let node = 1; node < parents.length; node++) {
    const above = parents[node]!;
    wanted[node] = above === 0 ? Number(isWanted(frames[nodeFrames[node]!]!.name)) : wanted[above]!;
    kept[node] = selfCounts[node]! * wanted[node]!;
  }
  return { ...stacks, selfCounts: kept };
}
