import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import type { FlameModel } from '../../../common/flame/flame-model.ts';
import { formatShare } from '../../../common/flame/format.ts';
import type { FrameKind } from '../../../common/flame/frame-kind.ts';
import { kindLabel, libraryColour, SHADES } from '../../../common/flame/kinds.ts';
import { formatterOf } from '../../../common/flame/shown-type.ts';
import type { Leaves } from '../../../common/flame/tree-answer.ts';
import type { Colour } from '../state/url-state.ts';
import { useTheme } from '../state/use-browser.ts';
import { KindSwatch } from './kind-swatch.tsx';
import { countLeaves, shareLeaves } from './leaf-shares.ts';

interface Properties {
  model: FlameModel;
  root: number;
  colour: Colour;
  /** What all samples of the root ended in; undefined: the boxes tell, as far as there are any. */
  leaves: Leaves | undefined;
  /** Of the other side of a comparison, as wide in the picture as the first. */
  baseLeaves?: Leaves | undefined;
}

/** The colours in the picture, each with the share of samples that ended in such code: they add up to all. */
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

function Shares({ model, root, colour, leaves, baseLeaves }: Properties) {
  const byLibrary = colour === 'library';
  const what = formatterOf(model.type).column;
  const { shares, incomplete } = useMemo(() => {
    const counted = leaves ?? countLeaves(model, root);
    return shareLeaves(baseLeaves === undefined ? [counted] : [counted, baseLeaves], byLibrary);
  }, [model, root, leaves, baseLeaves, byLibrary]);
  const shown = byLibrary ? shares.slice(0, MAX_LIBRARIES) : shares;
  const rest = shown.reduce((left, { share }) => left - share, 1);
  return (
    <>
      {shown.map(({ group, isKind, share }) =>
        isKind ? (
          <Entry key={group} kind={group as FrameKind} {...{ share, what }} />
        ) : (
          <li key={group} title={`of the ${what} ended in code of this library`}>
            <LibrarySwatch library={group} />
            {group} <span class="legend-share">{formatShare(share)}</span>
          </li>
        ),
      )}
      {shares.length > shown.length && (
        <li>
          other libraries <span class="legend-share">{formatShare(rest)}</span>
        </li>
      )}
      {incomplete > 0 && (
        <li
          class="legend-apart"
          title={`of the ${what} have a stack that was cut; the marker in it says why`}
        >
          incomplete stacks <span class="legend-share">{formatShare(incomplete)}</span>
        </li>
      )}
    </>
  );
}

function Entry({ kind, share, what }: { kind: FrameKind; share: number; what: string }): JSX.Element {
  const title = TITLES[kind] ?? `ended in code of this kind (${kindLabel(kind)})`;
  return (
    <li title={`of the ${what} ${title}`}>
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
  'abort-marker': 'have nothing but the reason why their stack was cut',
  process: 'have no frame: nothing but their process is known',
  other: 'are in boxes that are not loaded: zoom in to load them',
};
