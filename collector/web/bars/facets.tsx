import { useState } from 'preact/hooks';
import { isAttributeLabel, isLinkLabel, titleOfAttribute } from '../../../common/profile/filters/filter.ts';
import { TRACE_ID_PLACE } from '../../../common/profile/model/link.ts';
import { readTerms, valuesOf } from '../state/terms.ts';
import type { FoundLabel, UrlState } from '../state/url-state.ts';
import { useMedia } from '../state/use-browser.ts';
import { useFoundLabels } from '../state/use-found-labels.ts';
import { Facet } from './facet.tsx';

const LABELS: readonly { label: string; title: string }[] = [
  { label: 'process', title: 'Processes' },
  { label: 'service', title: 'Services' },
  { label: 'container', title: 'Containers' },
  { label: 'host', title: 'Hosts' },
  { label: 'thread', title: 'Threads' },
  { label: 'cpu', title: 'CPUs' },
  { label: 'kind', title: 'Frame type' },
  { label: 'pid', title: 'PIDs' },
  { label: 'command', title: 'Commands' },
  { label: 'path', title: 'Executables' },
  { label: 'cgroup', title: 'cgroups' },
];

interface Properties {
  state: UrlState;
  isLive: boolean;
  /** Of the collector: where traces are shown. */
  traceUrl: string | undefined;
  onWhere(where: string): void;
}

const isFoundLabel = (key: string): key is FoundLabel => isLinkLabel(key) || isAttributeLabel(key);

function titleOf(label: FoundLabel): string {
  if (isAttributeLabel(label)) return titleOfAttribute(label);
  return label === 'trace_id' ? 'Traces' : 'Spans';
}

/** What can be filtered by, last what only some samples have; only open facets ask for values. */
export function Facets({ state, isLive, traceUrl, onWhere }: Properties) {
  const named = readTerms(state.where).map(({ key }) => key);
  const found = new Set([...useFoundLabels(state, isLive), ...named.filter(isFoundLabel)]);
  const all = [...LABELS, ...[...found].map((label) => ({ label, title: titleOf(label) }))];
  const [open, setOpen] = useState<ReadonlySet<string>>(
    () => new Set(['process', ...named.filter((label) => names(state, label))]),
  );
  const set = (label: string, isOpen: boolean): void => {
    if (open.has(label) === isOpen) return;
    const next = new Set(open);
    if (isOpen) next.add(label);
    else next.delete(label);
    setOpen(next);
  };
  const isNarrow = useMedia('(max-width: 860px)');
  const lists = (
    <nav class="facets" aria-label="Filters">
      {all.map(({ label, title }) => (
        <details
          key={label}
          open={open.has(label)}
          onToggle={(event) => set(label, event.currentTarget.open)}
        >
          <summary>{title}</summary>
          {open.has(label) && (
            <Facet {...{ label, title, state, isLive, onWhere }} hrefOf={hrefsOf(label, traceUrl)} />
          )}
        </details>
      ))}
    </nav>
  );
  if (!isNarrow) return lists;
  return (
    <details class="facets-fold">
      <summary>Filters</summary>
      {lists}
    </details>
  );
}

/** '' stands for samples of no trace. */
const hrefsOf = (
  label: string,
  traceUrl: string | undefined,
): ((value: string) => string | undefined) | undefined =>
  label === 'trace_id' && traceUrl !== undefined
    ? (id) => (id === '' ? undefined : traceUrl.replaceAll(TRACE_ID_PLACE, id))
    : undefined;

const names = ({ where }: UrlState, label: string): boolean =>
  valuesOf(where, label, '=').length + valuesOf(where, label, '!=').length > 0;
