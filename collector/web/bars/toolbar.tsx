import type { RefObject } from 'preact';
import { formatDuration } from '../../../common/flame/format.ts';
import { RANGES, type RangeName, type UrlState } from '../state/url-state.ts';
import { useNow } from '../state/use-browser.ts';
import type { Condition } from '../views/diagnose.ts';
import { ExportMenu } from './export-menu.tsx';

interface Properties {
  state: UrlState;
  /** What the search found, or why its expression is none. */
  searchNote: string;
  isSearchBad: boolean;
  /** The shown time is fixed, and in the address. */
  isPaused: boolean;
  condition: Condition;
  updatedMs: number | undefined;
  /** Whose samples are shown, '' if unknown. */
  hosts: string;
  searchBox: RefObject<HTMLInputElement | null>;
  onChange(change: Partial<UrlState>): void;
  onRange(range: RangeName): void;
  onPause(): void;
  onHelp(): void;
  onImport(): void;
  /** Enter in the search: to the matches. */
  onSearchEnter(): void;
}

export function Toolbar(properties: Properties) {
  const { state, onRange, onPause, onHelp, onImport, isPaused } = properties;
  return (
    <header class="toolbar">
      <h1 class="brand">
        <svg viewBox="0 0 20 20" width="20" height="20" aria-hidden="true">
          <rect x="1" y="2" width="18" height="4" rx="1.5" class="brand-1" />
          <rect x="1" y="8" width="12" height="4" rx="1.5" class="brand-2" />
          <rect x="1" y="14" width="7" height="4" rx="1.5" class="brand-3" />
        </svg>
        everyframe
      </h1>
      <LiveMark {...properties} />
      <Choice
        label="Time range"
        options={RANGES}
        value={state.overview === undefined ? state.range : undefined}
        onChoose={onRange}
      />
      <button
        type="button"
        class="button icon"
        aria-pressed={isPaused}
        title={isPaused ? 'Resume (P): follow the present again' : 'Pause (P): keep the shown time'}
        onClick={onPause}
      >
        <span class={isPaused ? 'icon-play' : 'icon-pause'} aria-hidden="true" />
        <span class="visually-hidden">Pause</span>
      </button>
      <SearchBox {...properties} />
      <button
        type="button"
        class="button"
        title="Profiles, or programs and debug files that name functions; they can be dropped on the page as well"
        onClick={onImport}
      >
        Import
      </button>
      <ExportMenu state={state} />
      <button type="button" class="button icon" title="Help (?)" onClick={onHelp}>
        <span aria-hidden="true">?</span>
        <span class="visually-hidden">Help</span>
      </button>
    </header>
  );
}

interface ChoiceProperties {
  label: string;
  options: readonly { name: string; label: string; title: string }[];
  /** None of them is pressed where it is another one, or undefined. */
  value: string | undefined;
  onChoose(value: string): void;
}

function Choice({ label, options, value, onChoose }: ChoiceProperties) {
  return (
    <fieldset class="choice" aria-label={label}>
      {options.map((option) => (
        <button
          key={option.name}
          type="button"
          aria-pressed={option.name === value}
          title={option.title}
          onClick={() => onChoose(option.name)}
        >
          {option.label}
        </button>
      ))}
    </fieldset>
  );
}

function SearchBox({ state, searchNote, isSearchBad, searchBox, onChange, onSearchEnter }: Properties) {
  return (
    <div class="search">
      <input
        ref={searchBox}
        type="search"
        placeholder="Search: text or /expression/"
        aria-label="Search functions"
        aria-keyshortcuts="/"
        aria-invalid={isSearchBad}
        spellcheck={false}
        autocomplete="off"
        value={state.search}
        onKeyDown={(event) => event.key === 'Enter' && onSearchEnter()}
        onInput={(event) => onChange({ search: event.currentTarget.value })}
      />
      {searchNote === '' ? (
        <kbd>/</kbd>
      ) : (
        <output class={isSearchBad ? 'search-note bad' : 'search-note'} title={searchNote}>
          {searchNote}
        </output>
      )}
    </div>
  );
}

const MARKS: Record<Condition, string> = {
  live: 'Live',
  waiting: 'Waiting for an agent',
  silent: 'No samples',
  unreachable: 'Collector unreachable',
};

/** Answers come every 2 s, large ones less often. */
const OLD_SECONDS = 15;

function LiveMark({ condition, isPaused, updatedMs, hosts }: Properties) {
  const now = useNow();
  const isFixed = isPaused && condition !== 'unreachable';
  const seconds = updatedMs === undefined ? 0 : Math.max(0, Math.round((now - updatedMs) / 1000));
  const isOld = updatedMs !== undefined && !isFixed && seconds > OLD_SECONDS;
  const mark = isFixed ? 'Paused' : MARKS[condition];
  const parts = [mark, hosts, isOld ? `${formatDuration(seconds)} ago` : ''];
  return (
    <span class={`live live-${isFixed ? 'paused' : condition}`}>
      <i aria-hidden="true" />
      {parts.filter((part) => part !== '').join(' · ')}
    </span>
  );
}
