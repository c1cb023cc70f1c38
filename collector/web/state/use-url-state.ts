import { useEffect, useRef, useState } from 'preact/hooks';
import { formatHash, parseHash, type UrlState } from './url-state.ts';

/** What to change, or how to find it in the state as it is by then. */
export type UrlChange = Partial<UrlState> | ((state: UrlState) => Partial<UrlState>);

/**
 * The state in the address: a zoom or a process is a step to go back from, a search in typing is not. A change starts from all
 * changes before it, whether the page was drawn since or not: keys come quicker than a slow page draws.
 */
export function useUrlState(): [UrlState, (change: UrlChange) => void] {
  const [state, setState] = useState(() => parseHash(location.hash));
  const latest = useRef(state);
  const show = (next: UrlState): void => {
    latest.current = next;
    setState(next);
  };
  useEffect(() => {
    const read = (): void => show(parseHash(location.hash));
    addEventListener('popstate', read);
    return () => removeEventListener('popstate', read);
  }, []);
  const change = (asked: UrlChange): void => {
    const changes = typeof asked === 'function' ? asked(latest.current) : asked;
    const next = { ...latest.current, ...changes };
    const url = location.pathname + formatHash(next);
    if (url === location.pathname + location.hash) return;
    if ('search' in changes) history.replaceState(null, '', url);
    else history.pushState(null, '', url);
    show(next);
  };
  return [state, change];
}
