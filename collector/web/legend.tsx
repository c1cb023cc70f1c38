import { useMemo } from 'preact/hooks';
import type { FrameKind } from '../store/store.ts';
import { type FlameModel, kindOf, subtreeOf } from './flame-model.ts';
import { formatShare } from './format.ts';
import { KindSwatch } from './kind-swatch.tsx';
import { kindLabel } from './kinds.ts';

/** The colours in the picture, each with the share of samples that ended in code of that kind. */
export function Legend({ model, root }: { model: FlameModel; root: number }) {
  const shares = useMemo(() => sharesByKind(model, root), [model, root]);
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

/** Samples of a kind's own; for incomplete stacks all that hangs below the marker, which has none of its own. */
function sharesByKind(model: FlameModel, root: number): { kind: FrameKind; share: number }[] {
  const inside = subtreeOf(model, root);
  const sums = new Map<FrameKind, number>();
  for (let node = root; node < model.count; node++) {
    if (inside[node] === 0) continue;
    const kind = kindOf(model, node);
    const samples = kind === 'abort-marker' ? model.total[node]! : model.self[node]!;
    if (samples > 0) sums.set(kind, (sums.get(kind) ?? 0) + samples);
  }
  return [...sums]
    .map(([kind, samples]) => ({ kind, share: samples / model.total[root]! }))
    .sort((a, b) => b.share - a.share);
}
