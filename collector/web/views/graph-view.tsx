import { useEffect, useMemo, useRef } from 'preact/hooks';
import {
  ancestors,
  buildModel,
  type FlameModel,
  findZoom,
  notLoaded,
  zoomKeyOf,
} from '../../../common/flame/flame-model.ts';
import { formatShare, formatSpan, plural } from '../../../common/flame/format.ts';
import type { FlameGraphResponse } from '../../../common/flame/tree-answer.ts';
import type { DiffTreeAnswer } from '../../api/types.ts';
import { Breadcrumb } from '../flame/breadcrumb.tsx';
import { ColourChoice } from '../flame/colour-choice.tsx';
import { describeMyCode, describeView } from '../flame/describe.ts';
import { buildChangeModel } from '../flame/diff-model.ts';
import { FlameGraph } from '../flame/flame-graph.tsx';
import { Legend } from '../flame/legend.tsx';
import { showSource } from '../state/function-actions.ts';
import { ask, MAX_BOXES } from '../state/questions.ts';
import { parseSearch, type SearchResult, search } from '../state/search.ts';
import { COLOURS, type Colour, type UrlState } from '../state/url-state.ts';
import { useAnswer } from '../state/use-answer.ts';
import type { SearchNote, ViewProperties } from '../state/view-properties.ts';
import { CallTree } from '../tables/call-tree.tsx';
import { askDiff, baseOf } from './diff-range.ts';
import { Waiting } from './waiting.tsx';

const LABELS = { icicle: 'Icicle', flame: 'Flame graph', inverted: 'Inverted icicle' };

/** All stacks as one picture or table. */
export function GraphView(properties: ViewProperties) {
  const { state, rangeTitle, jumps, change, announce, onMenu, onSearchNote } = properties;
  const { view, transform } = state;
  const colour = colourOf(state);
  const { model, error, isStale } = useModel(properties, colour);
  const { root, zoomTo } = useZoom(model, state, change);
  const { found, note } = useSearch(model, state.search, root);
  useEffect(() => onSearchNote(note), [note.text, note.isBad]);
  // Once per change of what is shown, not per refresh: a reader must not be talked over every 2 s.
  const isThere = model !== undefined;
  useEffect(() => {
    if (isThere) announce(`${rangeTitle}, ${state.where || 'everything'}: ${describeView(model, 0)}`);
  }, [isThere, rangeTitle, state.where, transform]);
  // Of inverted stacks the ends are the first row: the same for every zoom.
  const isCounted =
    model !== undefined && (view === 'inverted' || (!isStale && zoomKeyOf(model, root) === state.zoom));
  if (model === undefined) return <Waiting error={error} />;
  if (model.total[0] === 0) return <p class="hint">The transforms leave no stack. Take one back.</p>;
  return (
    <>
      <div class="heading">
        <Breadcrumb model={model} root={root} onZoom={zoomTo} />
        <p class="summary">
          {describeView(model, root)}
          <NotLoaded {...{ model, root }} />
        </p>
      </div>
      <LeftOut {...{ model, transform }} />
      {view === 'tree' ? (
        <CallTree
          {...{ model, root, found, onMenu }}
          onZoom={zoomTo}
          onSource={(target) => change(showSource(target))}
        />
      ) : (
        <FlameGraph
          {...{ model, root, found, colour, jumps, announce, onMenu }}
          label={LABELS[view as keyof typeof LABELS] ?? LABELS.icicle}
          isFlipped={view === 'flame'}
          onZoom={zoomTo}
          onOpen={(name) => change({ view: 'callers', function: name })}
          onSource={(target) => change(showSource(target))}
        />
      )}
      <div class="legend-row">
        <Legend {...{ model, root, colour }} leaves={isCounted ? model.leaves : undefined} />
        {colour === 'difference' && (
          <span class="soft">
            compared with {formatSpan(baseOf(properties))}
            {model.comparison?.baseSamples === 0 && ', which has no samples'}
          </span>
        )}
        {view !== 'tree' && (
          <ColourChoice
            {...{ colour }}
            options={COLOURS.filter((name) => name !== 'difference' || canCompare(view))}
            onColour={(name) => change({ colour: name === 'kind' ? undefined : name })}
          />
        )}
      </div>
    </>
  );
}

/** Both sides of a difference are trees from the outermost function inwards. */
const canCompare = (view: UrlState['view']): boolean => view === 'icicle' || view === 'flame';

function colourOf({ view, colour = 'kind' }: UrlState): Colour {
  return view === 'tree' || (colour === 'difference' && !canCompare(view)) ? 'kind' : colour;
}

/** The picture; where colours tell the difference also of the time before, or of what was chosen on the diff tab. */
function useModel(properties: ViewProperties, colour: Colour) {
  const { state, isLive } = properties;
  const path =
    colour === 'difference'
      ? askDiff('difftree', properties)
      : ask('tree', state, {
          transform: state.transform,
          invert: state.view === 'inverted' ? 1 : undefined,
          zoom: state.zoom,
          limit: MAX_BOXES,
        });
  const { value: answer, error, isStale } = useAnswer<FlameGraphResponse | DiffTreeAnswer>(path, isLive);
  const model = useMemo(
    () => answer && ('base' in answer ? buildChangeModel(answer) : buildModel(answer)),
    [answer],
  );
  return { model, error, isStale };
}

/** With *My code only*: what is left, and why some bars are empty. */
function LeftOut({ model, transform }: { model: FlameModel; transform: string }) {
  const text = useMemo(() => describeMyCode(model, transform), [model, transform]);
  return text === '' ? null : <p class="hint left-out">{text}</p>;
}

/** A share of less is not worth a word. */
const MIN_NOT_LOADED = 0.0005;

function NotLoaded({ model, root }: { model: FlameModel; root: number }) {
  const share = useMemo(() => notLoaded(model, root) / (model.total[root] || 1), [model, root]);
  if (share < MIN_NOT_LOADED) return null;
  return (
    <span title="in boxes narrower than a pixel that are not loaded yet: zooming in loads them">
      {' '}
      · {formatShare(share)} not loaded
    </span>
  );
}

/** The zoomed box, or while it is missing from the data the nearest of its callers that is there. */
function useZoom(
  model: FlameModel | undefined,
  state: UrlState,
  change: (change: Partial<UrlState>) => void,
) {
  const path = useRef<string[]>([]);
  const wanted = path.current.at(-1) === state.zoom ? path.current : [state.zoom];
  const find = (key: string) => (model === undefined ? undefined : findZoom(model, key));
  const key = wanted.findLast((candidate) => find(candidate) !== undefined);
  const root = (key !== undefined && find(key)) || 0;
  const zoomTo = (node: number): void => {
    path.current = ancestors(model!, node).map((each) => zoomKeyOf(model!, each));
    change({ zoom: zoomKeyOf(model!, node) });
  };
  return { root, zoomTo };
}

interface Search {
  found: SearchResult | undefined;
  note: SearchNote;
}

function useSearch(model: FlameModel | undefined, text: string, root: number): Search {
  return useMemo(() => {
    const matcher = parseSearch(text);
    const noteOf = (said: string, isBad = false): SearchNote => ({ text: said, isBad });
    if (matcher === undefined || model === undefined) return { found: undefined, note: noteOf('') };
    if ('error' in matcher) return { found: undefined, note: noteOf(matcher.error, true) };
    const found = search(model, matcher, root);
    const share = formatShare(model.total[root] === 0 ? 0 : found.samples / model.total[root]!);
    const note = found.nodes === 0 ? 'no match' : `${share} in ${plural(found.nodes, 'box', 'boxes')}`;
    return { found, note: noteOf(note) };
  }, [model, text, root]);
}
