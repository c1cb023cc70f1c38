import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import type { FrameKind } from '../store/store.ts';
import { type FlameModel, kindOf, libraryOf, subtreeOf } from './flame-model.ts';
import { formatShare } from './format.ts';
import { KindSwatch } from './kind-swatch.tsx';
import { kindLabel, libraryColour, SHADES } from './kinds.ts';
import type { Colour } from './url-state.ts';
import { useTheme } from './use-browser.ts';

/** The colours in the picture, each with the share of samples that ended in such code. */
interface Properties {
  model: FlameModel;
  root: number;
  colour: Colour;
  /** The innermost functions are below the root, not at the ends. */
  isInverted?: boolean;
}

export function Legend(properties: Properties) {
  const { model, colour } = properties;
  return (
    <ul class="legend" aria-label="Colours">
      {colour === 'difference' && model.comparison !== undefined ? (
        <>
          <li>
            <span class="swatch grew" /> grew
          </li>
          <li>
            <span class="swatch shrank" /> shrank
          </li>
        </>
      ) : (
        <Shares {...properties} />
      )}
    </ul>
  );
}

/** More libraries than can be told apart by their colours. */
const MAX_LIBRARIES = 8;

function Shares({ model, root, colour, isInverted = false }: Properties) {
  const byLibrary = colour === 'library';
  const shares = useMemo(() => {
    const groupOf = byLibrary ? libraryOrKind : kindOf;
    return isInverted ? sharesOfFirstRow(model, groupOf) : sharesOfEnds(model, root, groupOf);
  }, [model, root, isInverted, byLibrary]);
  const shown = byLibrary ? shares.slice(0, MAX_LIBRARIES) : shares;
  const rest = shares.slice(shown.length).reduce((sum, { share }) => sum + share, 0);
  return (
    <>
      {shown.map(({ group, isKind, share }) =>
        isKind ? (
          <Entry key={group} kind={group as FrameKind} share={share} />
        ) : (
          <li key={group} title="of the samples ended in code of this library">
            <LibrarySwatch library={group} />
            {group} <span class="legend-share">{formatShare(share)}</span>
          </li>
        ),
      )}
      {shares.length > shown.length && (
        <li>
          {shares.length - shown.length} more <span class="legend-share">{formatShare(rest)}</span>
        </li>
      )}
    </>
  );
}

function Entry({ kind, share }: { kind: FrameKind; share: number }): JSX.Element {
  return (
    <li title={TITLES[kind] ?? `of the samples ended in code of this kind (${kindLabel(kind)})`}>
      <KindSwatch kind={kind} />
      {kindLabel(kind)} <span class="legend-share">{formatShare(share)}</span>
    </li>
  );
}

function LibrarySwatch({ library }: { library: string }) {
  const { dark } = useTheme();
  const style = { background: libraryColour(library, (SHADES - 1) / 2, dark) };
  return <span class="swatch" style={style} aria-hidden="true" />;
}

const TITLES: Partial<Record<FrameKind, string>> = {
  'abort-marker': 'of the stacks could not be followed to their start; the box says why',
  other: 'of the samples are in branches too small to draw: filter, or focus on a function, to see them',
};

interface Share {
  group: string;
  /** The group is a kind of frame, not a library. */
  isKind: boolean;
  share: number;
}

type GroupOf = (model: FlameModel, node: number) => string;

/** What no library holds is told by its kind. */
const libraryOrKind: GroupOf = (model, node) => {
  const library = libraryOf(model, node);
  return library === '' ? kindOf(model, node) : `${LIBRARY_MARK}${library}`;
};
const LIBRARY_MARK = '\0';

function sharesOfFirstRow(model: FlameModel, groupOf: GroupOf): Share[] {
  const sums = new Map<string, number>();
  const first = model.firstChild[0]!;
  for (let node = first; node < first + model.childCount[0]!; node++) {
    const group = groupOf(model, node);
    sums.set(group, (sums.get(group) ?? 0) + model.total[node]!);
  }
  return toShares(sums, model.total[0]!);
}

const toShares = (sums: ReadonlyMap<string, number>, all: number): Share[] =>
  [...sums]
    .map(([group, samples]) => {
      const isKind = !group.startsWith(LIBRARY_MARK);
      return { group: isKind ? group : group.slice(LIBRARY_MARK.length), isKind, share: samples / all };
    })
    .sort((a, b) => b.share - a.share);

/** Samples of a group's own; for incomplete stacks all that hangs below the marker, which has none of its own. */
function sharesOfEnds(model: FlameModel, root: number, groupOf: GroupOf): Share[] {
  const inside = subtreeOf(model, root);
  const sums = new Map<string, number>();
  for (let node = root; node < model.count; node++) {
    if (inside[node] === 0) continue;
    const samples = kindOf(model, node) === 'abort-marker' ? model.total[node]! : model.self[node]!;
    if (samples === 0) continue;
    const group = groupOf(model, node);
    sums.set(group, (sums.get(group) ?? 0) + samples);
  }
  return toShares(sums, model.total[root]!);
}
