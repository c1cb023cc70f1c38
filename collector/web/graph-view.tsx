import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { FlameGraphResponse } from '../api/types.ts';
import { Breadcrumb } from './breadcrumb.tsx';
import { CallTree } from './call-tree.tsx';
import { describeView } from './describe.ts';
import { FlameGraph } from './flame-graph.tsx';
import { ancestors, buildModel, type FlameModel } from './flame-model.ts';
import { formatShare, plural } from './format.ts';
import { Legend } from './legend.tsx';
import { ask } from './questions.ts';
import { parseSearch, type SearchResult, search } from './search.ts';
import type { UrlState } from './url-state.ts';
import { useAnswer } from './use-answer.ts';

interface Properties {
  state: UrlState;
  isLive: boolean;
  rangeTitle: string;
  /** Grows by one for each wish to go to the next match. */
  jumps: number;
  change(change: Partial<UrlState>): void;
  announce(text: string): void;
  onSearchNote(note: { text: string; isBad: boolean }): void;
}

/** All stacks as one picture or table. */
export function GraphView({ state, isLive, rangeTitle, jumps, change, announce, onSearchNote }: Properties) {
  const { value: answer } = useAnswer<FlameGraphResponse>(ask('tree', state), isLive);
  const model = useMemo(() => answer && buildModel(answer), [answer]);
  const { root, zoomTo } = useZoom(model, state, change);
  const { found, note, isBad } = useSearch(model, state.search, root);
  useEffect(() => onSearchNote({ text: note, isBad }), [note, isBad]);
  // Once per change of what is shown, not per refresh: a reader must not be talked over every 2 s.
  const isThere = model !== undefined;
  useEffect(() => {
    if (isThere) announce(`${rangeTitle}, ${state.where || 'everything'}: ${describeView(model, 0)}`);
  }, [isThere, rangeTitle, state.where]);
  if (model === undefined || model.samples === 0) return null;
  return (
    <>
      <div class="heading">
        <Breadcrumb model={model} root={root} onZoom={zoomTo} />
        <p class="summary">{describeView(model, root)}</p>
      </div>
      {state.view === 'graph' ? (
        <FlameGraph {...{ model, root, found, jumps, announce }} onZoom={zoomTo} />
      ) : (
        <CallTree {...{ model, root, found }} onZoom={zoomTo} />
      )}
      <Legend model={model} root={root} />
    </>
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
  const key = wanted.findLast((candidate) => model?.nodeByPath.has(candidate));
  const root = key === undefined ? 0 : model!.nodeByPath.get(key)!;
  const zoomTo = (node: number): void => {
    path.current = ancestors(model!, node).map((each) => model!.pathKey[each]!);
    change({ zoom: node === 0 ? '' : model!.pathKey[node]! });
  };
  return { root, zoomTo };
}

interface Search {
  found: SearchResult | undefined;
  note: string;
  isBad: boolean;
}

function useSearch(model: FlameModel | undefined, text: string, root: number): Search {
  return useMemo(() => {
    const matcher = parseSearch(text);
    if (matcher === undefined || model === undefined) return { found: undefined, note: '', isBad: false };
    if ('error' in matcher) return { found: undefined, note: matcher.error, isBad: true };
    const found = search(model, matcher, root);
    const share = formatShare(model.total[root] === 0 ? 0 : found.samples / model.total[root]!);
    const note = found.nodes === 0 ? 'no match' : `${share} in ${plural(found.nodes, 'box', 'boxes')}`;
    return { found, note, isBad: false };
  }, [model, text, root]);
}
