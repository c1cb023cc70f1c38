import { useLayoutEffect, useRef } from 'preact/hooks';
import { VIEWS, type ViewName } from '../state/url-state.ts';

const TITLES: Record<ViewName, { label: string; title: string }> = {
  icicle: { label: 'Icicle', title: 'callers above, what they call below' },
  flame: { label: 'Flame graph', title: 'callers below, what they call above' },
  inverted: { label: 'Inverted', title: 'functions by themselves first, their callers below' },
  top: { label: 'Top functions', title: 'a table of functions' },
  callers: { label: 'Callers / callees', title: 'one function, who calls it and what it calls' },
  tree: { label: 'Call tree', title: 'the icicle as a table' },
  source: { label: 'Source', title: 'samples by line of a source file' },
  time: { label: 'Time', title: 'a heat map, and one thread in the order of time' },
  threads: { label: 'Threads', title: 'what each thread did and waited for, over time' },
  diff: { label: 'Diff', title: 'what changed between two times or filters' },
  health: { label: 'Health', title: 'is the data complete' },
};

interface Properties {
  view: ViewName;
  onView(view: ViewName): void;
}

/** The ways to look at the shown time; arrow keys go from one to the next. */
export function Tabs({ view, onView }: Properties) {
  const list = useRef<HTMLDivElement>(null);
  // on a narrow screen they are a line that is longer than the screen
  useLayoutEffect(() => {
    const tab = list.current!.querySelector<HTMLElement>(`#tab-${view}`)!;
    list.current!.scrollLeft = tab.offsetLeft - (list.current!.clientWidth - tab.offsetWidth) / 2;
  }, [view]);
  const onKeyDown = (event: KeyboardEvent): void => {
    const at = VIEWS.indexOf(view);
    const last = VIEWS.length - 1;
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: last }[event.key];
    if (next === undefined) return;
    const name = VIEWS[(next + VIEWS.length) % VIEWS.length]!;
    onView(name);
    list.current!.querySelector<HTMLElement>(`#tab-${name}`)!.focus();
    event.preventDefault();
  };
  return (
    <div ref={list} class="tabs" role="tablist" aria-label="View" onKeyDown={onKeyDown}>
      {VIEWS.map((name) => (
        <button
          key={name}
          id={`tab-${name}`}
          type="button"
          role="tab"
          aria-selected={name === view}
          aria-controls="view"
          tabIndex={name === view ? 0 : -1}
          title={TITLES[name].title}
          onClick={() => onView(name)}
        >
          {TITLES[name].label}
        </button>
      ))}
    </div>
  );
}
