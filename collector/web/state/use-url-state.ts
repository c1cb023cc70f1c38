import { useEffect, useState } from 'preact/hooks';
import { formatHash, parseHash, type UrlState } from './url-state.ts';

/** The state in the address: a zoom or a process is a step to go back from, a search in typing is not. */
export function useUrlState(): [UrlState, (change: Partial<UrlState>) => void] {
  const [state, setState] = useState(() => parseHash(location.hash));
  useEffect(() => {
    const read = (): void => setState(parseHash(location.hash));
    addEventListener('popstate', read);
    return () => removeEventListener('popstate', read);
  }, []);
  const change = (changes: Partial<UrlState>): void => {
    const next = { ...state, ...changes };
    const url = location.pathname + formatHash(next);
    if (url === location.pathname + location.hash) return;
    if ('search' in changes) history.replaceState(null, '', url);
    else history.pushState(null, '', url);
    setState(next);
  };
  return [state, change];
}
