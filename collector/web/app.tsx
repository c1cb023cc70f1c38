import { useEffect, useRef, useState } from 'preact/hooks';
import { parseLength } from '../../common/base/length.ts';
import { formatSpan, plural } from '../../common/flame/format.ts';
import { CPU_SAMPLES, chooseType } from '../../common/flame/shown-type.ts';
import type { TimelineAnswer, TypesAnswer } from '../api/types.ts';
import type { StatusResponse } from '../status/status.ts';
import type { TimeRange } from '../store/store.ts';
import { describeAgent, type WatchedAgent } from './bars/agent-banner.ts';
import { Facets } from './bars/facets.tsx';
import { FileDrop } from './bars/file-drop.tsx';
import { FilterBar } from './bars/filter-bar.tsx';
import { HelpDialog } from './bars/help-dialog.tsx';
import { Tabs } from './bars/tabs.tsx';
import { Toolbar } from './bars/toolbar.tsx';
import { TransformBar } from './bars/transform-bar.tsx';
import { TypeChoice } from './bars/type-choice.tsx';
import { ApproximateJava, hasApproximateJava } from './state/approximate-java.ts';
import { FunctionMenu, type MenuRequest } from './state/function-menu.tsx';
import { askOverview, askTypes, isFollowing } from './state/questions.ts';
import { toggleValue } from './state/terms.ts';
import { RANGES, rangeTitle, type UrlState } from './state/url-state.ts';
import { useAnswer } from './state/use-answer.ts';
import { useFoundLabels } from './state/use-found-labels.ts';
import { useShortcuts } from './state/use-shortcuts.ts';
import { useUrlState } from './state/use-url-state.ts';
import type { ViewProperties } from './state/view-properties.ts';
import { Timeline } from './timeline/timeline.tsx';
import { diagnose } from './views/diagnose.ts';
import { EmptyState } from './views/empty-state.tsx';
import { HealthView } from './views/health-view.tsx';
import { MainView } from './views/main-view.tsx';

/** Enough for a wide screen; more for a long time. */
const TIMELINE_STEPS = 240;
const MINUTE_STEPS = 120;
const MINUTE_MS = 60_000;

export function App() {
  const [address, change] = useUrlState();
  const types = useAnswer<TypesAnswer>(askTypes(address), isFollowing(address)).value?.types;
  const shownType = chooseType(address.type, types ?? []);
  const state = { ...address, type: shownType === CPU_SAMPLES.name ? '' : shownType };
  const [help, setHelp] = useState(false);
  const [jumps, setJumps] = useState(0);
  const [wishes, setWishes] = useState(0);
  const [menu, setMenu] = useState<MenuRequest>();
  const [note, setNote] = useState({ text: '', isBad: false });
  const [spoken, announce] = useState('');
  const searchBox = useRef<HTMLInputElement>(null);
  const {
    diagnosis,
    timeline,
    hosts,
    rangeTitle: title,
    isLive,
    frozen,
    agentNote,
    isJavaApproximate,
    traceUrl,
  } = useOverview(state);
  const [dismissed, setDismissed] = useState('');
  const isPaused = !isFollowing(state);
  const onPause = (): void => {
    if (isPaused) change({ overview: undefined, brush: undefined });
    else if (frozen !== undefined) change({ overview: frozen });
  };
  const onWhere = (where: string): void => change({ where, zoom: '' });

  useShortcuts({
    search: () => searchBox.current?.focus(),
    help: () => setHelp(true),
    pause: onPause,
    view: () => change(({ view }) => ({ view: view === 'tree' ? 'icicle' : 'tree' })),
    range: (index) => change(followed(RANGES[index]!.name)),
    escape: () => change(lessOf),
  });
  useEffect(() => announce(note.text), [note.text]);

  return (
    <div class="page">
      <Toolbar
        {...{ state, isPaused, searchBox, hosts, onPause }}
        searchNote={note.text}
        isSearchBad={note.isBad}
        condition={diagnosis.condition}
        updatedMs={timeline.updatedMs}
        onChange={change}
        onRange={(range) => change(followed(range))}
        onHelp={() => setHelp(true)}
        onImport={() => setWishes(wishes + 1)}
        onSearchEnter={() => setJumps(jumps + 1)}
      />
      <div class="body">
        <Facets {...{ state, isLive, traceUrl, onWhere }} />
        <main>
          {agentNote !== '' && agentNote !== dismissed && (
            <p class="warning dismissable" role="status">
              <span>{agentNote}</span>
              <button
                type="button"
                class="plain"
                aria-label="Dismiss"
                onClick={() => setDismissed(agentNote)}
              >
                ×
              </button>
            </p>
          )}
          {diagnosis.warnings.map((warning) => (
            <p key={warning} class="warning" role="status">
              {warning}
            </p>
          ))}
          <div class="filter-row">
            {types && (
              <TypeChoice
                {...{ types }}
                isFiltered={state.where !== ''}
                shown={shownType}
                onType={(type) => change({ type: type === CPU_SAMPLES.name ? '' : type, zoom: '' })}
              />
            )}
            <FilterBar where={state.where} onWhere={onWhere} />
          </div>
          <ApproximateJava.Provider value={isJavaApproximate}>
            <Shown
              rangeTitle={title}
              {...{ state, isLive, jumps, change, announce, diagnosis }}
              timeline={timeline.value}
              onMenu={setMenu}
              onSearchNote={setNote}
            />
          </ApproximateJava.Provider>
          {menu !== undefined && (
            <FunctionMenu {...menu} {...{ state, change }} onClose={() => setMenu(undefined)} />
          )}
        </main>
      </div>
      <div class="visually-hidden" aria-live="polite">
        {spoken}
      </div>
      <FileDrop
        wishes={wishes}
        onShow={(span) => change({ overview: span, brush: undefined, where: '', zoom: '' })}
      />
      {help && <HelpDialog onClose={() => setHelp(false)} />}
    </div>
  );
}

/** Samples of a moment come within this time: what ended before that does not change any more. */
const SETTLING_MS = 30_000;

/** The timeline and what can be said of it. */
function useOverview(state: UrlState) {
  const follows = isFollowing(state);
  const status = useAnswer<StatusResponse>('api/v1/status', true);
  const nowMs = status.value?.nowMs ?? 0;
  const isLive = follows || nowMs - state.overview!.toMs < SETTLING_MS;
  const path = askOverview('timeline', state, {
    by: state.by,
    steps:
      follows && (parseLength(state.range) ?? Number.POSITIVE_INFINITY) <= MINUTE_MS
        ? MINUTE_STEPS
        : TIMELINE_STEPS,
  });
  const timeline = useAnswer<TimelineAnswer>(path, isLive);
  const title = titleOf(state);
  const diagnosis = diagnose({
    status: status.value,
    error: status.error ?? timeline.error,
    isRefused: status.error === undefined && timeline.isRefused,
    rangeTitle: title,
    samples: timeline.value?.samples,
    where: state.where,
    isFollowing: follows,
  });
  const hosts = listHosts(status.value);
  useEffect(() => {
    document.title = ['everyframe', hosts].filter((part) => part !== '').join(' · ');
  }, [hosts]);
  const frozen = timeline.value && freeze(timeline.value);
  const watched = status.value as (StatusResponse & { agent?: WatchedAgent }) | undefined;
  const agentNote = describeAgent(watched?.agent, nowMs);
  const isJavaApproximate = hasApproximateJava(status.value);
  return {
    ...{ diagnosis, timeline, hosts, rangeTitle: title, isLive, frozen, agentNote, isJavaApproximate },
    traceUrl: status.value?.traceUrl,
  };
}

/** The shown time up to the newest sample: of what is behind that, some samples are still on their way. */
function freeze({ fromMs, toMs, steps, groups, other }: TimelineAnswer): TimeRange {
  const hasSamples = (step: number): boolean =>
    other[step]! > 0 || groups.some(({ counts }) => counts[step]! > 0);
  let end = steps;
  while (end > 1 && !hasSamples(end - 1)) end--;
  const isEmpty = end === 1 && !hasSamples(0);
  return {
    fromMs: Math.round(fromMs),
    toMs: Math.round(isEmpty ? toMs : fromMs + (end * (toMs - fromMs)) / steps),
  };
}

type ShownProperties = Omit<ViewProperties, 'timeline'> & {
  timeline: TimelineAnswer | undefined;
  diagnosis: ReturnType<typeof diagnose>;
};

function Shown({ timeline, diagnosis, ...view }: ShownProperties) {
  const { state, change } = view;
  const hasSamples = timeline !== undefined && timeline.samples > 0;
  const found = useFoundLabels(state, isFollowing(state));
  return (
    <>
      {timeline !== undefined && (hasSamples || state.brush !== undefined) && (
        <Timeline
          answer={timeline}
          brush={state.brush}
          base={state.view === 'diff' ? state.base : undefined}
          by={state.by}
          found={found}
          isLive={isFollowing(state)}
          onBy={(by) => change({ by })}
          onBrush={(span, isBase) => change(brushed(state, span, isBase, timeline))}
          onPick={(value) => change({ where: toggleValue(state.where, state.by, '=', value), zoom: '' })}
        />
      )}
      <div class="tab-row">
        <Tabs view={state.view} onView={(name) => change({ view: name, zoom: '' })} />
        <TransformBar
          transform={state.transform}
          type={state.type}
          onTransform={(transform) => change({ transform, zoom: '' })}
        />
      </div>
      <div class="view" id="view" role="tabpanel" aria-labelledby={`tab-${state.view}`}>
        {state.view === 'health' ? (
          <HealthView {...view} />
        ) : hasSamples ? (
          <MainView {...view} timeline={timeline} />
        ) : (
          diagnosis.headline !== '' && (
            <EmptyState
              diagnosis={diagnosis}
              onShowAll={state.where === '' ? undefined : () => change({ where: '' })}
            />
          )
        )}
      </div>
    </>
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
  span: UrlState['brush'],
  isBase: boolean,
  { fromMs, toMs }: TimelineAnswer,
): Partial<UrlState> {
  if (span === undefined) return { brush: undefined };
  const overview = state.overview ?? { fromMs: Math.round(fromMs), toMs: Math.round(toMs) };
  return isBase ? { base: span, overview, view: 'diff' } : { brush: span, overview };
}

/** What Escape takes away: the search, then the zoom, then the brush. */
function lessOf(state: UrlState): Partial<UrlState> {
  if (state.search !== '') return { search: '' };
  return state.zoom !== '' ? { zoom: '' } : { brush: undefined };
}

function titleOf(state: UrlState): string {
  const span = state.brush ?? state.overview;
  return span === undefined ? rangeTitle(state.range) : formatSpan(span);
}

/** Where the samples come from: `web-1`, or `3 hosts`. */
function listHosts(status: StatusResponse | undefined): string {
  const hosts = new Set(status?.agents.map(({ host, peer }) => host || peer));
  return hosts.size > 1 ? plural(hosts.size, 'host') : [...hosts].join();
}
