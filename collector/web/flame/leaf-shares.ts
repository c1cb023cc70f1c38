/** The figures of a legend. */

import { type FlameModel, kindOf, libraryOf, subtreeOf } from '../../../common/flame/flame-model.ts';
import type { FrameKind } from '../../../common/flame/frame-kind.ts';
import type { Leaves } from '../../../common/flame/tree-answer.ts';

interface Share {
  group: string;
  /** The group is a kind of frame, not a library. */
  isKind: boolean;
  share: number;
}

export interface LeafShares {
  /** The largest first; of kinds they add up to 1. */
  shares: Share[];
  /** Of the samples, besides. */
  incomplete: number;
}

/** Shares of the samples; of two sides the mean of both. */
export function shareLeaves(sides: readonly Leaves[], byLibrary: boolean): LeafShares {
  const sums = new Map<string, Share>();
  let incomplete = 0;
  for (const { samples, kinds, libraries, incomplete: cut } of sides) {
    if (samples === 0) continue;
    const unit = 1 / samples / sides.length;
    incomplete += cut * unit;
    const groups = byLibrary
      ? libraries.map((each) => ({
          group: each.library || 'no library',
          isKind: false,
          samples: each.samples,
        }))
      : kinds.map((each) => ({ group: each.kind, isKind: true, samples: each.samples }));
    for (const { group, isKind, samples: count } of groups) {
      const known = sums.get(group) ?? { group, isKind, share: 0 };
      known.share += count * unit;
      sums.set(group, known);
    }
  }
  return { shares: [...sums.values()].sort((a, b) => b.share - a.share), incomplete };
}

/** What the boxes at and below a node ended in: what was folded is of kind `other`. */
export function countLeaves(model: FlameModel, root: number): Leaves {
  const inside = subtreeOf(model, root);
  const isCut = new Uint8Array(model.count);
  const kinds = new Map<FrameKind, number>();
  const libraries = new Map<string, number>();
  let incomplete = 0;
  for (let node = 1; node < model.count; node++) {
    isCut[node] = kindOf(model, node) === 'abort-marker' ? 1 : isCut[model.parent[node]!]!;
    const count = model.self[node]!;
    if (inside[node] === 0 || count === 0) continue;
    const kind = kindOf(model, node);
    const library = libraryOf(model, node);
    kinds.set(kind, (kinds.get(kind) ?? 0) + count);
    libraries.set(library, (libraries.get(library) ?? 0) + count);
    if (isCut[node] === 1) incomplete += count;
  }
  return {
    samples: model.total[root]!,
    kinds: [...kinds].map(([kind, samples]) => ({ kind, samples })),
    libraries: [...libraries].map(([library, samples]) => ({ library, samples })),
    incomplete,
  };
}
