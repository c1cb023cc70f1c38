import { useState } from 'preact/hooks';
import { formatCount, formatShare, valueName } from '../../../common/flame/format.ts';
import { CPU_SAMPLES, formatterOf } from '../../../common/flame/shown-type.ts';
import type { ValuesAnswer } from '../../api/types.ts';
import { ask } from '../state/questions.ts';
import { toggleValue, valuesOf, withoutKey } from '../state/terms.ts';
import type { UrlState } from '../state/url-state.ts';
import { useAnswer } from '../state/use-answer.ts';

/** The end of a long name stays in sight: `x86_64-linux-gnu-gcc` and `x86_64-linux-gnu-ld.bfd` differ there. */
const LONG_NAME = 18;
const TAIL = 7;
/** A shorter bar is a dot. */
const MIN_BAR = 0.02;
const MAX_VALUES = 100;
/** Fewer are read at a glance. */
const MIN_SEARCHED = 12;

interface Properties {
  label: string;
  title: string;
  state: UrlState;
  isLive: boolean;
  /** Where a value is shown elsewhere; undefined: nowhere. */
  hrefOf?: ((value: string) => string | undefined) | undefined;
  onWhere(where: string): void;
}

/** Values of a label, the busiest first, counted under the rest of the filter; a click shows only that. */
export function Facet({ label, title, state, isLive, hrefOf, onWhere }: Properties) {
  const { where } = state;
  const [contains, setContains] = useState('');
  const path = ask(
    'values',
    { ...state, where: withoutKey(where, label) },
    { label, limit: MAX_VALUES, contains },
  );
  const { value: answer } = useAnswer<ValuesAnswer>(path, isLive);
  const chosen = valuesOf(where, label, '=');
  const refused = valuesOf(where, label, '!=');
  const values = answer?.values ?? [];
  const samples = answer?.samples ?? 0;
  const gone = [...chosen, ...refused].filter((value) => !values.some((each) => each.value === value));
  const all = [...gone.map((value) => ({ value, samples: 0, processes: 1 })), ...values];
  const more = (answer?.valueCount ?? 0) - values.length;
  const current = chosen[0] ?? all[0]?.value;
  const isSearched = contains !== '' || (answer?.valueCount ?? 0) >= MIN_SEARCHED;
  return (
    <>
      {isSearched && (
        <input
          class="facet-search"
          type="search"
          placeholder="Find…"
          aria-label={`Find in ${title}`}
          value={contains}
          onInput={(event) => setContains(event.currentTarget.value)}
        />
      )}
      <ul onKeyDown={walkEntries} aria-label={label}>
        {all.map((each) => (
          <Entry
            key={each.value}
            name={valueName(label, each.value)}
            samples={each.samples}
            processes={each.processes ?? 1}
            share={each.samples / samples}
            amount={formatterOf(answer?.type ?? CPU_SAMPLES).amount(each.samples)}
            isChosen={chosen.includes(each.value)}
            isRefused={refused.includes(each.value)}
            isStop={each.value === current}
            href={hrefOf?.(each.value)}
            onChoose={() => onWhere(toggleValue(where, label, '=', each.value))}
            onRefuse={() => onWhere(toggleValue(where, label, '!=', each.value))}
          />
        ))}
      </ul>
      {more > 0 && <p class="soft facet-more">{formatCount(more)} more: type to find them</p>}
      {values.length === 0 && contains !== '' && <p class="soft facet-more">Nothing matches</p>}
    </>
  );
}

function walkEntries(event: KeyboardEvent): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const entry = (event.target as Element).closest('li');
  if (step === undefined || entry === null) return;
  const next = step === 1 ? entry.nextElementSibling : entry.previousElementSibling;
  next?.querySelector('button')?.focus();
  event.preventDefault();
}

interface EntryProperties {
  name: string;
  samples: number;
  /** How many processes have the name. */
  processes: number;
  share: number;
  /** Of its samples, in words. */
  amount: string;
  isChosen: boolean;
  isRefused: boolean;
  /** One stop for Tab: arrow keys walk the list, which may have hundreds of entries. */
  isStop: boolean;
  href: string | undefined;
  onChoose(): void;
  onRefuse(): void;
}

function Entry(entry: EntryProperties) {
  const { name, samples, processes, share, amount, isChosen, isRefused, isStop, onChoose, onRefuse } = entry;
  const tail = name.length > LONG_NAME ? TAIL : 0;
  return (
    <li class={isRefused ? 'refused' : ''}>
      <button
        type="button"
        class="process"
        aria-pressed={isChosen}
        tabIndex={isStop ? 0 : -1}
        title={`${name}: ${amount}`}
        onClick={onChoose}
        onKeyDown={(event) => event.key === '-' && onRefuse()}
      >
        <span class="process-name">
          <span>{name.slice(0, name.length - tail)}</span>
          {tail > 0 && <span>{name.slice(-tail)}</span>}
        </span>
        {processes > 1 && <span class="process-count">×{formatCount(processes)}</span>}
        <span class="process-share">{samples === 0 ? '–' : formatShare(share)}</span>
        {samples > 0 && share > MIN_BAR && (
          <span class="process-bar" style={{ width: `${share * 100}%` }} aria-hidden="true" />
        )}
      </button>
      {entry.href !== undefined && (
        <a
          class="elsewhere"
          href={entry.href}
          target="_blank"
          rel="noopener noreferrer"
          aria-label={`Open trace ${name}`}
          title={`Open ${entry.href}`}
        >
          ↗
        </a>
      )}
      <button
        type="button"
        class="refuse"
        tabIndex={-1}
        aria-pressed={isRefused}
        aria-label={`Exclude ${name}`}
        title={`Exclude ${name} (key: -)`}
        onClick={onRefuse}
      >
        −
      </button>
    </li>
  );
}
