import type { ProcessesResponse } from '../api/types.ts';
import type { ProcessGroup } from '../query/process-groups.ts';
import { formatCount, formatShare, plural } from './format.ts';

/** The end of a long name stays in sight: `x86_64-linux-gnu-gcc` and `x86_64-linux-gnu-ld.bfd` differ there. */
const LONG_NAME = 16;
const TAIL = 7;
/** A shorter bar is a dot. */
const MIN_BAR = 0.02;

interface Properties {
  processes: ProcessesResponse | undefined;
  selected: string | undefined;
  onSelect(process: string | undefined): void;
}

/** What ran, the busiest first; a click shows only that. */
export function ProcessList({ processes, selected, onSelect }: Properties) {
  const groups = processes?.groups ?? [];
  const all = processes?.samples ?? 0;
  const isGone = selected !== undefined && !groups.some(({ name }) => name === selected);
  return (
    <nav class="processes" aria-label="Processes">
      <h2>Processes</h2>
      <ul onKeyDown={walkEntries}>
        <Entry
          label="All processes"
          samples={all}
          share={1}
          isSelected={selected === undefined}
          onClick={() => onSelect(undefined)}
        />
        {isGone && (
          <Entry label={selected} samples={0} share={0} isSelected onClick={() => onSelect(undefined)} />
        )}
        {groups.map((group) => (
          <Entry
            key={group.name}
            label={group.name}
            count={group.processes}
            title={describeGroup(group)}
            samples={group.samples}
            share={group.samples / all}
            isSelected={group.name === selected}
            onClick={() => onSelect(group.name === selected ? undefined : group.name)}
          />
        ))}
      </ul>
    </nav>
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
  label: string;
  /** How many processes have the name. */
  count?: number;
  title?: string;
  samples: number;
  share: number;
  isSelected: boolean;
  onClick(): void;
}

function Entry({ label, count = 1, title, samples, share, isSelected, onClick }: EntryProperties) {
  const tail = label.length > LONG_NAME ? TAIL : 0;
  const percent = samples === 0 ? '–' : formatShare(share);
  return (
    <li>
      <button
        type="button"
        class="process"
        aria-pressed={isSelected}
        // One stop for Tab: arrow keys walk the list, which may have hundreds of entries.
        tabIndex={isSelected ? 0 : -1}
        title={title}
        onClick={onClick}
      >
        <span class="process-name">
          <span>{label.slice(0, label.length - tail)}</span>
          {tail > 0 && <span>{label.slice(-tail)}</span>}
        </span>
        {count > 1 && <span class="process-count">×{formatCount(count)}</span>}
        <span class="process-share">{percent}</span>
        {samples > 0 && share > MIN_BAR && (
          <span class="process-bar" style={{ width: `${share * 100}%` }} aria-hidden="true" />
        )}
      </button>
    </li>
  );
}

function describeGroup({ name, samples, processes, threads, busiest }: ProcessGroup): string {
  const lines = busiest
    .slice(0, 8)
    .map(({ pid, path, samples }) => `${pid}  ${path || '–'}  (${formatCount(samples)})`);
  const head = `${plural(samples, 'sample')} in ${plural(processes, 'process', 'processes')}, ${plural(threads, 'thread')}`;
  return [name, head, ...lines, ...(processes > lines.length ? ['…'] : [])].join('\n');
}
