import { useMemo } from 'preact/hooks';
import type { FrameKind } from '../store/store.ts';
import { type FlameModel, kindOf, subtreeOf } from './flame-model.ts';
import { formatShare } from './format.ts';
import { KindSwatch } from './kind-swatch.tsx';
import { kindLabel } from './kinds.ts';

/** The colours in the picture, each with the share of samples that ended in code of that kind. */
interface Properties {
  model: FlameModel;
  root: number;
  /** The innermost functions are below the root, not at the ends. */
  isInverted?: boolean;
}

export function Legend({ model, root, isInverted = false }: Properties) {
  const shares = useMemo(
    () => (isInverted ? sharesOfFirstRow(model) : sharesByKind(model, root)),
    [model, root, isInverted],
  );
  return (
    <ul class="legend" aria-label="Colours">
      {shares.map(({ kind, share }) => (
        <li
          key={kind}
          title={TITLES[kind] ?? `of the samples ended in code of this kind (${kindLabel(kind)})`}
        >
          <KindSwatch kind={kind} />
          {kindLabel(kind)} <span class="legend-share">{formatShare(share)}</span>
        </li>
      ))}
    </ul>
  );
}

const TITLES: Partial<Record<FrameKind, string>> = {
  'abort-marker': 'of the stacks could not be followed to their start; the box says why',
  other: 'of the samples are in branches too small to be sent',
};

interface KindShare {
  kind: FrameKind;
  share: number;
}

function sharesOfFirstRow(model: FlameModel): KindShare[] {
  const sums = new Map<FrameKind, number>();
  const first = model.firstChild[0]!;
  for (let node = first; node < first + model.childCount[0]!; node++) {
    sums.set(kindOf(model, node), (sums.get(kindOf(model, node)) ?? 0) + model.total[node]!);
  }
  return toShares(sums, model.total[0]!);
}

const toShares = (sums: ReadonlyMap<FrameKind, number>, all: number): KindShare[] =>
  [...sums].map(([kind, samples]) => ({ kind, share: samples / all })).sort((a, b) => b.share - a.share);

/** Samples of a kind's own; for incomplete stacks all that hangs below the marker, which has none of its own. */
function sharesByKind(model: FlameModel, root: number): KindShare[] {
  const inside = subtreeOf(model, root);
  const sums = new Map<FrameKind, number>();
  for (let node = root; node < model.count; node++) {
    if (inside[node] === 0) continue;
    const kind = kindOf(model, node);
    const samples = kind === 'abort-marker' ? model.total[node]! : model.self[node]!;
    if (samples > 0) sums.set(kind, (sums.get(kind) ?? 0) + samples);
  }
  return toShares(sums, model.total[root]!);
}
