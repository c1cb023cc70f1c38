import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { type FlameModel, pathKeyOf } from '../../../common/flame/flame-model.ts';
import { ROW_HEIGHT } from './flame-painter.ts';

/** Callers that stay in sight beside a zoomed box. */
const CALLER_ROWS = 2;

interface Picture {
  model: FlameModel;
  root: number;
  rows: number;
  height: number;
  isFlipped: boolean;
}

/** Goes to a newly zoomed box, and holds what is in sight in place when a picture grows. */
export function useFlameScroll(
  scroller: RefObject<HTMLElement | null>,
  { model, root, rows, height, isFlipped }: Picture,
): void {
  const lastRows = useRef(rows);
  useLayoutEffect(() => {
    const view = scroller.current;
    // A deeper picture that stands on its feet grows at its top.
    if (isFlipped && view !== null) view.scrollTop += (rows - lastRows.current) * ROW_HEIGHT;
    lastRows.current = rows;
  }, [rows, isFlipped]);
  const rootPath = pathKeyOf(model, root);
  useEffect(() => {
    const start = Math.max(0, model.depth[root]! - CALLER_ROWS);
    const top = isFlipped ? (rows - start) * ROW_HEIGHT - height : start * ROW_HEIGHT;
    scroller.current!.scrollTo({ top });
  }, [rootPath, isFlipped, isFlipped && height > 0]);
}
