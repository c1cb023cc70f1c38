import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { BoxTooltip } from './box-tooltip.tsx';
import { describeBox } from './describe.ts';
import { deepestRow, type FlameModel } from './flame-model.ts';
import { boxOf, FlamePainter, ROW_HEIGHT, type Scene } from './flame-painter.ts';
import { walk } from './keyboard.ts';
import { nextMatch, type SearchResult } from './search.ts';
import { useSize, useTheme } from './use-browser.ts';
import { usePointer } from './use-pointer.ts';
import { useZoomedRange } from './use-zoomed-range.ts';

const LABEL = 'Flame graph: arrow keys walk the boxes, Enter zooms, Backspace goes back, T shows a table';
/** Callers that stay in sight above a zoomed box. */
const CALLER_ROWS = 2;
const BOTTOM_MARGIN = 8;

interface Properties {
  model: FlameModel;
  /** Zoomed box, 0 for the whole graph. */
  root: number;
  found: SearchResult | undefined;
  /** Grows by one for each wish to go to the next match. */
  jumps: number;
  onZoom(node: number): void;
  announce(text: string): void;
}

/** A canvas of the viewport's size that stays in place while an empty column beside it scrolls. */
export function FlameGraph({ model, root, found, jumps, onZoom, announce }: Properties) {
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const { width, height } = useSize(scroller);
  const theme = useTheme();
  const [scrollTop, setScrollTop] = useState(0);
  /** Path key of the box that arrow keys start from; it is marked only where they brought it there. */
  const [chosen, setChosen] = useState<{ path: string; byKeyboard: boolean }>();
  const [isFocused, setFocused] = useState(false);
  const { from, to } = useZoomedRange(model, root);
  const pointer = usePointer(model, { from, to, scrollTop, width });
  const selected = chosen && model.nodeByPath.get(chosen.path);
  const marked = isFocused && chosen?.byKeyboard ? selected : undefined;
  const scene: Scene = {
    ...{ model, theme, from, to, root, scrollTop, width, height, found },
    hovered: pointer.node,
    selected: marked,
  };
  usePainter(canvas, scene);
  const rows = useMemo(() => deepestRow(model, root) + 1, [model, root]);
  const rootPath = model.pathKey[root]!;
  useEffect(() => {
    const top = Math.max(0, model.depth[root]! - CALLER_ROWS) * ROW_HEIGHT;
    scroller.current?.scrollTo({ top });
  }, [rootPath]);

  const choose = (node: number): void => {
    setChosen({ path: model.pathKey[node]!, byKeyboard: true });
    pointer.leave();
    announce(describeBox(model, node, root));
    scrollIntoView(scroller.current!, model.depth[node]! * ROW_HEIGHT);
  };
  const chooseMatch = (step: 1 | -1): void => {
    const match = found && nextMatch(model, found, root, selected, step);
    if (match !== undefined) choose(match);
  };
  useEffect(() => {
    if (jumps === 0) return;
    scroller.current!.focus();
    chooseMatch(1);
  }, [jumps]);
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === 'Enter') onZoom(selected ?? root);
    else if (event.key === 'Backspace') onZoom(model.parent[root]!);
    else if (event.key === 'n' || event.key === 'N') chooseMatch(event.key === 'n' ? 1 : -1);
    else {
      const next = walk(model, selected ?? root, root, event.key);
      if (next === undefined) return;
      choose(selected === undefined ? root : next);
    }
    event.preventDefault();
  };
  const onClick = (event: MouseEvent): void => {
    const node = pointer.nodeUnder(event);
    if (node === undefined) return;
    setChosen({ path: model.pathKey[node]!, byKeyboard: false });
    onZoom(node);
  };

  const shown = pointer.node ?? marked;
  return (
    <div class="flame">
      <div
        ref={scroller}
        class="flame-scroller"
        role="application"
        aria-roledescription="flame graph"
        aria-label={LABEL}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: an application takes the keyboard as a whole
        tabIndex={0}
        onScroll={() => setScrollTop(scroller.current!.scrollTop)}
        onFocus={() => setFocused(true)}
        onBlur={() => setFocused(false)}
        onKeyDown={onKeyDown}
      >
        <canvas
          ref={canvas}
          style={{ width: `${width}px`, height: `${height}px` }}
          class={pointer.node === undefined ? '' : 'pointing'}
          onMouseMove={pointer.move}
          onMouseLeave={pointer.leave}
          onClick={onClick}
        />
        <div style={{ height: `${Math.max(0, rows * ROW_HEIGHT + BOTTOM_MARGIN - height)}px` }} />
      </div>
      {shown !== undefined && (
        <BoxTooltip
          {...{ model, root }}
          node={shown}
          anchor={pointer.at ?? boxOf(scene, shown)}
          bounds={{ width, height }}
        />
      )}
    </div>
  );
}

/** Paints after every render; the number of boxes is left on the canvas for tests and curious people. */
function usePainter(canvas: { current: HTMLCanvasElement | null }, scene: Scene): void {
  const painter = useRef<FlamePainter | undefined>(undefined);
  useLayoutEffect(() => {
    if (canvas.current === null || scene.width === 0 || scene.height === 0) return;
    painter.current ??= new FlamePainter(canvas.current);
    canvas.current.dataset['boxes'] = String(painter.current.paint(scene));
  });
}

function scrollIntoView(view: HTMLElement, top: number): void {
  const bottom = top + ROW_HEIGHT;
  if (top < view.scrollTop) view.scrollTop = top;
  else if (bottom > view.scrollTop + view.clientHeight) view.scrollTop = bottom - view.clientHeight;
}
