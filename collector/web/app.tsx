import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { StatusResponse } from '../api/types.ts';
import { ActivityStrip } from './activity-strip.tsx';
import { Breadcrumb } from './breadcrumb.tsx';
import { CallTree } from './call-tree.tsx';
import { describeView } from './describe.ts';
import { diagnose } from './diagnose.ts';
import { EmptyState } from './empty-state.tsx';
import { FlameGraph } from './flame-graph.tsx';
import { ancestors, type FlameModel } from './flame-model.ts';
import { formatShare, plural } from './format.ts';
import { HelpDialog } from './help-dialog.tsx';
import { Legend } from './legend.tsx';
import { ProcessList } from './process-list.tsx';
import { parseSearch, type SearchResult, search } from './search.ts';
import { Toolbar } from './toolbar.tsx';
import { RANGES, type UrlState } from './url-state.ts';
import { useTheme } from './use-browser.ts';
import { useLiveData } from './use-live-data.ts';
import { useShortcuts } from './use-shortcuts.ts';
import { useUrlState } from './use-url-state.ts';

export function App() {
  const [state, change] = useUrlState();
  const [paused, setPaused] = useState(false);
  const [help, setHelp] = useState(false);
  const [jumps, setJumps] = useState(0);
  const [spoken, announce] = useState('');
  const searchBox = useRef<HTMLInputElement>(null);
  const data = useLiveData(state.range, state.process, paused);
  const { model, status, processes, error } = data;
  const { root, zoomTo } = useZoom(model, state, change);
  const { found, note, isBad } = useSearch(model, state.search, root);
  const rangeTitle = RANGES.find(({ name }) => name === state.range)!.title;
  const diagnosis = diagnose({ status, error, rangeTitle, samples: model?.samples, process: state.process });
  const hasPicture = model !== undefined && model.samples > 0;
  const theme = useTheme();
  const hosts = listHosts(status);

  useShortcuts({
    search: () => searchBox.current?.focus(),
    help: () => setHelp(true),
    pause: () => setPaused(!paused),
    view: () => change({ view: state.view === 'graph' ? 'tree' : 'graph' }),
    range: (index) => change({ range: RANGES[index]!.name }),
    escape: () => (state.search === '' ? zoomTo(0) : change({ search: '' })),
  });
  // Once per change of what is shown, not per refresh: a reader must not be talked over every 2 s.
  useEffect(() => {
    if (hasPicture) announce(`${rangeTitle}, ${state.process ?? 'all processes'}: ${describeView(model, 0)}`);
  }, [hasPicture, state.range, state.process]);
  useEffect(() => announce(note), [note]);
  useEffect(() => {
    document.title = ['everyframe', hosts].filter((part) => part !== '').join(' · ');
  }, [hosts]);

  return (
    <div class="page">
      <Toolbar
        {...{ state, paused, searchBox }}
        searchNote={note}
        isSearchBad={isBad}
        condition={diagnosis.condition}
        updatedMs={data.updatedMs}
        hosts={hosts}
        onChange={change}
        onPause={() => setPaused(!paused)}
        onHelp={() => setHelp(true)}
        onSearchEnter={() => setJumps(jumps + 1)}
      />
      <div class="body">
        <ProcessList
          processes={processes}
          selected={state.process}
          onSelect={(process) => change({ process, zoom: '' })}
        />
        <main>
          {diagnosis.warnings.map((warning) => (
            <p key={warning} class="warning" role="status">
              {warning}
            </p>
          ))}
          {hasPicture ? (
            <>
              <ActivityStrip model={model} isDark={theme.dark} />
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
          ) : (
            diagnosis.headline !== '' && (
              <EmptyState
                diagnosis={diagnosis}
                onShowAll={state.process === undefined ? undefined : () => change({ process: undefined })}
              />
            )
          )}
        </main>
      </div>
      <div class="visually-hidden" aria-live="polite">
        {spoken}
      </div>
      {help && <HelpDialog onClose={() => setHelp(false)} />}
    </div>
  );
}

/** Where the samples come from: `web-1`, or `3 hosts`. */
function listHosts(status: StatusResponse | undefined): string {
  const hosts = new Set(status?.agents.map(({ host, peer }) => host || peer));
  return hosts.size > 1 ? plural(hosts.size, 'host') : [...hosts].join();
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
