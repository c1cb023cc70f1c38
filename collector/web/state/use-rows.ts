import type { RefObject } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { useSize } from './use-browser.ts';

export const ROW_HEIGHT = 28;
const OVERSCAN = 8;

export interface VisibleRows {
  first: number;
  /** Behind the last one. */
  end: number;
  /** How many rows a Page key passes. */
  pageRows: number;
  onScroll(): void;
}

/** Which rows of a long table exist in the page: those in sight and a few more. The current row is kept in sight. */
export function useRows(
  scroller: RefObject<HTMLElement | null>,
  count: number,
  current: number,
  rowHeight = ROW_HEIGHT,
): VisibleRows {
  const { height } = useSize(scroller);
  const [scrollTop, setScrollTop] = useState(0);
  useEffect(() => {
    const view = scroller.current;
    // Before it is measured nothing is out of sight.
    if (view === null || height === 0) return;
    const top = current * rowHeight;
    if (top < view.scrollTop) view.scrollTop = top;
    else if (top + 2 * rowHeight > view.scrollTop + height) view.scrollTop = top + 2 * rowHeight - height;
  }, [current]);
  return {
    first: Math.max(0, Math.floor(scrollTop / rowHeight) - OVERSCAN),
    end: Math.min(count, Math.ceil((scrollTop + height) / rowHeight) + OVERSCAN),
    pageRows: Math.max(1, Math.floor(height / rowHeight) - 2),
    onScroll: () => setScrollTop(scroller.current!.scrollTop),
  };
}
