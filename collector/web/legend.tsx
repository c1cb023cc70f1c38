import { useMemo } from 'preact/hooks';
import type { FrameKind } from '../store/store.ts';
import { type FlameModel, subtreeOf } from './flame-model.ts';
import { formatShare } from './format.ts';
import { KindSwatch } from './kind-swatch.tsx';
import { kindLabel } from './kinds.ts';

/** The colours in the picture, with how much of the time was spent in code of that kind itself. */
export function Legend({ model, root }: { model: FlameModel; root: number }) {
  const shares = useMemo(() => selfByKind(model, root), [model, root]);
  return (
    <ul class="legend" aria-label="Colours, and the share of samples in code of that kind itself">
      {shares.map(({ kind, share }) => (
        <li key={kind}>
          <KindSwatch kind={kind} />
          {kindLabel(kind)} <span class="legend-share">{formatShare(share)}</span>
        </li>
      ))}
    </ul>
  );
}

function selfByKind(model: FlameModel, root: number): { kind: FrameKind; share: number }[] {
  const inside = subtreeOf(model, root);
  const sums = new Map<FrameKind, number>();
  for (let node = root; node < model.count; node++) {
    const self = model.self[node]!;
    if (self === 0 || inside[node] === 0) continue;
    const kind = model.kinds[model.frame[node]!]!;
    sums.set(kind, (sums.get(kind) ?? 0) + self);
  }
  return [...sums]
    .map(([kind, self]) => ({ kind, share: self / model.total[root]! }))
    .sort((a, b) => b.share - a.share);
}
