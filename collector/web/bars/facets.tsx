import { useState } from 'preact/hooks';
import { isAttributeLabel, LABEL_KEY } from '../../../common/profile/filters/filter.ts';
import { PROGRAM_LABEL } from '../../../common/profile/model/sample-attributes.ts';
import type { LabelsAnswer } from '../../api/types.ts';
import { ask } from '../state/questions.ts';
import { readTerms, valuesOf } from '../state/terms.ts';
import type { UrlState } from '../state/url-state.ts';
import { useAnswer } from '../state/use-answer.ts';
import { useMedia } from '../state/use-browser.ts';
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

/** Labels of programs as they are written in a filter. */
const titleOf = (attribute: string): string => {
  const name = attribute.slice(1);
  return name.startsWith(PROGRAM_LABEL) ? LABEL_KEY + name.slice(PROGRAM_LABEL.length) : name;
};

interface Properties {
  state: UrlState;
  isLive: boolean;
  onWhere(where: string): void;
}

/** What can be filtered by, attributes that some samples have last; only open facets ask for values. */
export function Facets({ state, isLive, onWhere }: Properties) {
  const { value: found } = useAnswer<LabelsAnswer>(ask('labels', { ...state, where: '' }), isLive);
  const named = readTerms(state.where).map(({ key }) => key);
  const attributes = new Set([
    ...(found?.attributes ?? []).map((name) => `@${name}`),
    ...named.filter(isAttributeLabel),
  ]);
  const all = [...LABELS, ...[...attributes].map((label) => ({ label, title: titleOf(label) }))];
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
          {open.has(label) && <Facet {...{ label, title, state, isLive, onWhere }} />}
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

const names = ({ where }: UrlState, label: string): boolean =>
  valuesOf(where, label, '=').length + valuesOf(where, label, '!=').length > 0;
