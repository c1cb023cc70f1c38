import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useState } from 'preact/hooks';
import { makeTheme, type Theme } from './theme.ts';

const THEMES = { light: makeTheme(false), dark: makeTheme(true) };

/** Follows the system's choice of light or dark. */
export function useTheme(): Theme {
  const isDark = useMedia('(prefers-color-scheme: dark)');
  return isDark ? THEMES.dark : THEMES.light;
}

export function useMedia(query: string): boolean {
  const [matches, setMatches] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const list = matchMedia(query);
    const update = (): void => setMatches(list.matches);
    list.addEventListener('change', update);
    return () => list.removeEventListener('change', update);
  }, [query]);
  return matches;
}

/** Inner size of an element in CSS pixels; 0 by 0 before it is there. */
export function useSize(element: RefObject<HTMLElement | null>): { width: number; height: number } {
  const [size, setSize] = useState({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const target = element.current;
    if (target === null) return;
    const observer = new ResizeObserver(() => {
      setSize({ width: target.clientWidth, height: target.clientHeight });
    });
    observer.observe(target);
    return () => observer.disconnect();
  }, []);
  return size;
}

/** Milliseconds since the Unix epoch, renewed every second. */
export function useNow(): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return now;
}
