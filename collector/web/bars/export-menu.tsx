import { useRef } from 'preact/hooks';
import { ask } from '../state/questions.ts';
import type { UrlState } from '../state/url-state.ts';

const FORMATS: readonly { format: string; title: string }[] = [
  { format: 'html', title: 'Page (.html), opens without a network' },
  { format: 'svg', title: 'Picture (.svg)' },
  { format: 'pprof', title: 'pprof' },
  { format: 'folded', title: 'Folded stacks' },
  { format: 'speedscope', title: 'speedscope (speedscope.app)' },
  { format: 'firefox', title: 'Firefox Profiler (profiler.firefox.com)' },
  { format: 'perfetto', title: 'Perfetto trace (ui.perfetto.dev)' },
  { format: 'otlp', title: 'OTLP' },
  { format: 'text', title: 'Text report' },
];

/** What is seen, as a file: the shown time, filtered and transformed. */
export function ExportMenu({ state }: { state: UrlState }) {
  const menu = useRef<HTMLDetailsElement>(null);
  const close = (): void => {
    menu.current!.open = false;
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== 'Escape' || !menu.current!.open) return;
    close();
    menu.current!.querySelector('summary')!.focus();
    event.preventDefault();
    event.stopPropagation();
  };
  const onFocusOut = (event: FocusEvent): void => {
    if (!menu.current!.contains(event.relatedTarget as Node | null)) close();
  };
  return (
    <details ref={menu} class="export" onKeyDown={onKeyDown} onFocusOut={onFocusOut}>
      <summary class="button">Export</summary>
      <ul>
        {FORMATS.map(({ format, title }) => (
          <li key={format}>
            <a href={ask('export', state, { format, transform: state.transform })} download onClick={close}>
              {title}
            </a>
          </li>
        ))}
      </ul>
    </details>
  );
}
