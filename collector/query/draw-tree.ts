/** Flame graphs of what a store holds, with what all of their samples ended in. */

import { stepDown } from '../../common/flame/path-key.ts';
import type { Leaves } from '../../common/flame/tree-answer.ts';
import type { Transform } from '../../common/profile/filters/transform-list.ts';
import type { SampleFilter, StackCounts, Window } from '../store/store.ts';
import type { PruneLimits } from './flame/boxes.ts';
import { buildDiffTree, buildFlameTree, type FlameTree, type Zoomed } from './flame/flame-tree.ts';
import { invertParts } from './flame/invert.ts';
import { LeafSums, type Looked } from './flame/leaf-sums.ts';
import { frameHash } from './flame/path-hashes.ts';
import type { PartStore } from './rows.ts';
import { readWindow } from './window.ts';

export interface Wanted {
  transforms: readonly Transform[];
  limits: PruneLimits;
}

/** A box that is looked at in a long time may be small: no more than a thousand times as much is read for it. */
const MIN_SHARE = 1 / 1000;

interface Side {
  window: Window & { isWhole: boolean };
  leaves: Leaves;
}

async function readSide(
  store: PartStore,
  filter: SampleFilter,
  { transforms }: Wanted,
  { steps = 1, share = 1 }: { steps?: number; share?: number },
): Promise<Side> {
  const sums = new LeafSums();
  const window = await readWindow(store, filter, steps, {
    precision: 'shown',
    transforms,
    share,
    leaves: sums,
  });
  return { window, leaves: sums.leaves };
}

/** What a tree looks at in place of all: undefined where that is all. */
function lookedAt({ zoomed }: FlameTree, { limits: { zoom } }: Wanted): Looked | undefined {
  if (zoomed === undefined || zoom === undefined) return undefined;
  return { ...zoom, beside: zoomed.beside.map((frame) => stepDown(zoom, frameHash(frame))) };
}

function sumLooked(parts: readonly StackCounts[], looked: Looked): Leaves {
  const sums = new LeafSums();
  for (const part of parts) sums.add(part, looked);
  return sums.leaves;
}

const shareOf = ({ events, carriedEvents }: Zoomed, samples: number): number =>
  Math.max(MIN_SHARE, Math.min(1, (events + carriedEvents) / Math.max(1, samples)));

/** All stacks as a tree. What is looked at is read once more, with more of it, where that was too rare for a picture of all. */
export async function drawTree(
  store: PartStore,
  filter: SampleFilter,
  wanted: Wanted & { steps: number; isInverted: boolean },
): Promise<Side & { tree: FlameTree }> {
  const { limits, isInverted, steps } = wanted;
  const draw = ({ parts }: Window): { tree: FlameTree; drawn: readonly StackCounts[] } => {
    const drawn = isInverted ? [invertParts(parts, limits)] : parts;
    return { tree: buildFlameTree(drawn, limits, isInverted ? 'size' : 'name'), drawn };
  };
  let side = await readSide(store, filter, wanted, { steps });
  let { tree, drawn } = draw(side.window);
  if (tree.zoomed !== undefined && !side.window.isWhole) {
    const share = shareOf(tree.zoomed, side.window.samples);
    side = await readSide(store, filter, wanted, { steps, share });
    ({ tree, drawn } = draw(side.window));
  }
  const looked = isInverted ? undefined : lookedAt(tree, wanted);
  return { ...side, tree, leaves: looked === undefined ? side.leaves : sumLooked(drawn, looked) };
}

/** The tree of two windows. */
export async function drawDiff(
  store: PartStore,
  filters: { now: SampleFilter; base: SampleFilter },
  wanted: Wanted,
): Promise<{ now: Side; base: Side; tree: FlameTree }> {
  const read = async (share: number) => ({
    now: await readSide(store, filters.now, wanted, { share }),
    base: await readSide(store, filters.base, wanted, { share }),
  });
  const draw = ({ now, base }: Awaited<ReturnType<typeof read>>): FlameTree =>
    buildDiffTree(now.window.parts, base.window.parts, wanted.limits);
  let sides = await read(1);
  let tree = draw(sides);
  if (tree.zoomed !== undefined && !(sides.now.window.isWhole && sides.base.window.isWhole)) {
    sides = await read(shareOf(tree.zoomed, sides.now.window.samples + sides.base.window.samples));
    tree = draw(sides);
  }
  const looked = lookedAt(tree, wanted);
  if (looked === undefined) return { ...sides, tree };
  const of = (side: Side): Side => ({ ...side, leaves: sumLooked(side.window.parts, looked) });
  return { now: of(sides.now), base: of(sides.base), tree };
}
