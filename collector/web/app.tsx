import { useEffect, useRef, useState } from 'preact/hooks';
import type { StatusResponse, TimelineAnswer } from '../api/types.ts';
import { diagnose } from './diagnose.ts';
import { EmptyState } from './empty-state.tsx';
import { Facets } from './facets.tsx';
import { FilterBar } from './filter-bar.tsx';
import { formatSpan, plural } from './format.ts';
import { GraphView } from './graph-view.tsx';
import { HelpDialog } from './help-dialog.tsx';
import { askOverview, isFollowing } from './questions.ts';
import { toggleValue } from './terms.ts';
import { Timeline } from './timeline.tsx';
import { Toolbar } from './toolbar.tsx';
import { RANGES, type UrlState } from './url-state.ts';
import { useAnswer } from './use-answer.ts';
import { useShortcuts } from './use-shortcuts.ts';
import { useUrlState } from './use-url-state.ts';

/** Enough for a wide screen; more for a long time. */
const TIMELINE_STEPS = 240;
const MINUTE_STEPS = 120;

export function App() {
  const [state, change] = useUrlState();
  const [paused, setPaused] = useState(false);
  const [help, setHelp] = useState(false);
  const [jumps, setJumps] = useState(0);
  const [note, setNote] = useState({ text: '', isBad: false });
  const [spoken, announce] = useState('');
  const searchBox = useRef<HTMLInputElement>(null);
  const follows = isFollowing(state);
  const isLive = follows && !paused;
  const timelinePath = askOverview('timeline', state, {
    by: state.by,
    steps: follows && state.range === '60s' ? MINUTE_STEPS : TIMELINE_STEPS,
  });
  const timeline = useAnswer<TimelineAnswer>(timelinePath, isLive);
  const status = useAnswer<StatusResponse>('api/v1/status', !paused);
  const { value: answer } = timeline;
  const rangeTitle = titleOf(state);
  const diagnosis = diagnose({
    status: status.value,
    error: status.error ?? timeline.error,
    rangeTitle,
    samples: answer?.samples,
    where: state.where,
    isFollowing: follows,
  });
  const hosts = listHosts(status.value);

  useShortcuts({
    search: () => searchBox.current?.focus(),
    help: () => setHelp(true),
    pause: () => setPaused(!paused),
    view: () => change({ view: state.view === 'graph' ? 'tree' : 'graph' }),
    range: (index) => change(followed(RANGES[index]!.name)),
    escape: () => change(lessOf(state)),
  });
  useEffect(() => announce(note.text), [note.text]);
  useEffect(() => {
    document.title = ['everyframe', hosts].filter((part) => part !== '').join(' · ');
  }, [hosts]);

  return (
    <div class="page">
      <Toolbar
        {...{ state, paused, searchBox, hosts }}
        searchNote={note.text}
        isSearchBad={note.isBad}
        condition={diagnosis.condition}
        updatedMs={timeline.updatedMs}
        onChange={change}
        onRange={(range) => change(followed(range))}
        onPause={() => setPaused(!paused)}
        onHelp={() => setHelp(true)}
        onSearchEnter={() => setJumps(jumps + 1)}
      />
      <div class="body">
        <Facets {...{ state, isLive }} onWhere={(where) => change({ where, zoom: '' })} />
        <main>
          {diagnosis.warnings.map((warning) => (
            <p key={warning} class="warning" role="status">
              {warning}
            </p>
          ))}
          <FilterBar where={state.where} onWhere={(where) => change({ where, zoom: '' })} />
          {answer !== undefined && (answer.samples > 0 || state.brush !== undefined) && (
            <Timeline
              {...{ answer }}
              brush={state.brush}
              base={undefined}
              by={state.by}
              onBy={(by) => change({ by })}
              onBrush={(brush) => change(brushed(state, brush, answer))}
              onPick={(value) => change({ where: toggleValue(state.where, state.by, '=', value), zoom: '' })}
            />
          )}
          {answer !== undefined && answer.samples > 0 ? (
            <GraphView {...{ state, change, isLive, rangeTitle, jumps, announce }} onSearchNote={setNote} />
          ) : (
            diagnosis.headline !== '' && (
              <EmptyState
                diagnosis={diagnosis}
                onShowAll={state.where === '' ? undefined : () => change({ where: '' })}
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

const followed = (range: UrlState['range']): Partial<UrlState> => ({
  range,
  overview: undefined,
  brush: undefined,
});

/** A brush fixes the timeline under it, so that it stays where it is, and so does a link to it. */
function brushed(
  state: UrlState,
  brush: UrlState['brush'],
  { fromMs, toMs }: TimelineAnswer,
): Partial<UrlState> {
  if (brush === undefined) return { brush };
  return { brush, overview: state.overview ?? { fromMs: Math.round(fromMs), toMs: Math.round(toMs) } };
}

/** What Escape takes away: the search, then the zoom, then the brush. */
function lessOf(state: UrlState): Partial<UrlState> {
  if (state.search !== '') return { search: '' };
  return state.zoom !== '' ? { zoom: '' } : { brush: undefined };
}

function titleOf(state: UrlState): string {
  const span = state.brush ?? state.overview;
  return span === undefined ? RANGES.find(({ name }) => name === state.range)!.title : formatSpan(span);
}

/** Where the samples come from: `web-1`, or `3 hosts`. */
function listHosts(status: StatusResponse | undefined): string {
  const hosts = new Set(status?.agents.map(({ host, peer }) => host || peer));
  return hosts.size > 1 ? plural(hosts.size, 'host') : [...hosts].join();
}
