import { useState } from 'preact/hooks';
import { Facet } from './facet.tsx';
import { valuesOf } from './terms.ts';
import type { UrlState } from './url-state.ts';

const LABELS: readonly { label: string; title: string }[] = [
  { label: 'process', title: 'Processes' },
  { label: 'service', title: 'Services' },
  { label: 'container', title: 'Containers' },
  { label: 'host', title: 'Hosts' },
  { label: 'thread', title: 'Threads' },
  { label: 'cpu', title: 'CPUs' },
  { label: 'kind', title: 'Kinds of frames' },
  { label: 'pid', title: 'PIDs' },
  { label: 'command', title: 'Commands' },
  { label: 'path', title: 'Executables' },
  { label: 'cgroup', title: 'Control groups' },
];

interface Properties {
  state: UrlState;
  isLive: boolean;
  onWhere(where: string): void;
}

/** What can be filtered by; only open facets ask the collector. */
export function Facets({ state, isLive, onWhere }: Properties) {
  const [open, setOpen] = useState<ReadonlySet<string>>(
    () =>
      new Set(LABELS.map(({ label }) => label).filter((label) => label === 'process' || names(state, label))),
  );
  const set = (label: string, isOpen: boolean): void => {
    if (open.has(label) === isOpen) return;
    const next = new Set(open);
    if (isOpen) next.add(label);
    else next.delete(label);
    setOpen(next);
  };
  return (
    <nav class="facets" aria-label="Filters">
      {LABELS.map(({ label, title }) => (
        <details
          key={label}
          open={open.has(label)}
          onToggle={(event) => set(label, event.currentTarget.open)}
        >
          <summary>{title}</summary>
          {open.has(label) && <Facet {...{ label, state, isLive, onWhere }} />}
        </details>
      ))}
    </nav>
  );
}

const names = ({ where }: UrlState, label: string): boolean =>
  valuesOf(where, label, '=').length + valuesOf(where, label, '!=').length > 0;
