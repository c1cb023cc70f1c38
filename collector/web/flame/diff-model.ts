import { buildModel, type FlameModel } from '../../../common/flame/flame-model.ts';
import type { DiffTreeAnswer } from '../../api/types.ts';

/** The width of all, in place of samples: the two sides may have different numbers of them. */
const WIDTH = 1_000_000;

/** Each box as wide as the mean of its two shares: what is gone is seen as well as what is new. */
export function buildDiffModel({ now, base, leaves: _, ...tree }: DiffTreeAnswer): FlameModel {
  const { parent, frame, self, baseSelf } = tree.nodes;
  const nowUnit = WIDTH / 2 / Math.max(1, sum(self));
  const baseUnit = WIDTH / 2 / Math.max(1, sum(baseSelf));
  const model = buildModel({
    ...now,
    ...tree,
    samples: WIDTH,
    timeline: [],
    nodes: { parent, frame, self: self.map((count, node) => count * nowUnit + baseSelf[node]! * baseUnit) },
  });
  return {
    ...model,
    comparison: {
      now: sumUp(parent, self),
      base: sumUp(parent, baseSelf),
      nowSamples: sum(self),
      baseSamples: sum(baseSelf),
    },
  };
}

/** As wide as they are now; what is gone has no box. */
export function buildChangeModel({ now, base: _, leaves: __, ...tree }: DiffTreeAnswer): FlameModel {
  const { nodes } = tree;
  const total = sumUp(nodes.parent, nodes.self);
  const baseTotal = sumUp(nodes.parent, nodes.baseSelf);
  const kept: number[] = [];
  const ids = new Uint32Array(total.length);
  for (let node = 0; node < total.length; node++) {
    if (node > 0 && total[node] === 0) continue;
    ids[node] = kept.push(node) - 1;
  }
  const pick = (column: ArrayLike<number>): number[] => kept.map((node) => column[node]!);
  const model = buildModel({
    ...now,
    ...tree,
    timeline: [],
    nodes: {
      parent: pick(nodes.parent).map((parent) => ids[parent]!),
      frame: pick(nodes.frame),
      self: pick(nodes.self),
    },
  });
  return {
    ...model,
    comparison: {
      now: Float64Array.from(pick(total)),
      base: Float64Array.from(pick(baseTotal)),
      nowSamples: total[0]!,
      baseSamples: baseTotal[0]!,
    },
  };
}

/** By how much a box grew, from -1 (gone) over 0 to 1 (new). */
export function growthOf({ comparison }: FlameModel, node: number): number {
  if (comparison === undefined) return 0;
  const { now, base } = sharesOf(comparison, node);
  return now + base === 0 ? 0 : (now - base) / (now + base);
}

/** Shares of all samples of the two sides. */
export function sharesOf(
  { now, base, nowSamples, baseSamples }: NonNullable<FlameModel['comparison']>,
  node: number,
): { now: number; base: number } {
  return {
    now: nowSamples === 0 ? 0 : now[node]! / nowSamples,
    base: baseSamples === 0 ? 0 : base[node]! / baseSamples,
  };
}

const sum = (counts: readonly number[]): number => counts.reduce((a, b) => a + b, 0);

function sumUp(parent: readonly number[], self: readonly number[]): Float64Array {
  const total = Float64Array.from(self);
  for (let node = total.length - 1; node > 0; node--) total[parent[node]!]! += total[node]!;
  return total;
}
