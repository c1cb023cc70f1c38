import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { deepestRow, functionOf, nodeAtPath, pathKeyOf } from '../../../common/flame/flame-model.ts';
import type { MenuRequest } from '../state/function-menu.tsx';
import { nextMatch, type SearchResult } from '../state/search.ts';
import type { Colour } from '../state/url-state.ts';
import { useSize, useTheme } from '../state/use-browser.ts';
import { BoxTooltip } from './box-tooltip.tsx';
import { describeBox } from './describe.ts';
import { handleKeys, type KeyTargets } from './flame-keys.ts';
import { boxOf, FlamePainter, ROW_HEIGHT, type Scene, topOf } from './flame-painter.ts';
import { useFlameScroll } from './use-flame-scroll.ts';
import { usePointer } from './use-pointer.ts';
import { useZoomedRange } from './use-zoomed-range.ts';

const KEYS = 'arrow keys walk the boxes, Enter zooms, Backspace goes back, M opens a menu';
const BOTTOM_MARGIN = 8;

export interface FlameGraphProperties extends KeyTargets {
  found: SearchResult | undefined;
  colour: Colour;
  /** Grows by one for each wish to go to the next match. */
  jumps: number;
  /** What the picture is, for those who don't see it. */
  label: string;
  onMenu?(request: MenuRequest): void;
  announce(text: string): void;
}

/** A canvas of the viewport's size that stays in place while an empty column beside it scrolls. */
export function FlameGraph(properties: FlameGraphProperties) {
  const { model, root, found, colour, jumps, isFlipped, onMenu, announce } = properties;
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const { width, height } = useSize(scroller);
  const theme = useTheme();
  const [scrollTop, setScrollTop] = useState(0);
  /** Path key of the box that arrow keys start from; it is marked only where they brought it there. */
  const [chosen, setChosen] = useState<{ path: string; byKeyboard: boolean }>();
  const [isFocused, setFocused] = useState(false);
  const { from, to } = useZoomedRange(model, root);
  const rows = useMemo(() => deepestRow(model, root) + 1, [model, root]);
  const layout = { from, to, scrollTop, width, height, isFlipped, rows };
  const pointer = usePointer(model, layout);
  const selected = chosen && nodeAtPath(model, chosen.path);
  const marked = isFocused && chosen?.byKeyboard ? selected : undefined;
  const scene: Scene = {
    ...{ ...layout, model, theme, root, found, colour },
    hovered: pointer.node,
    selected: marked,
  };
  usePainter(canvas, scene);
  useFlameScroll(scroller, { model, root, rows, height, isFlipped });

  const choose = (node: number): void => {
    setChosen({ path: pathKeyOf(model, node), byKeyboard: true });
    pointer.leave();
    announce(describeBox(model, node, root));
    scrollIntoView(scroller.current!, topOf(layout, model.depth[node]!) + scrollTop);
  };
  const chooseMatch = (step: 1 | -1): void => {
    const match = found && nextMatch(model, found, root, selected, step);
    if (match !== undefined) choose(match);
  };
  useJumps(jumps, scroller, () => chooseMatch(1));
  const openMenu = (node: number, at: MenuRequest['at']): void => {
    const target = functionOf(model, node);
    if (target !== undefined) onMenu?.({ target, at });
  };
  const onKeyDown = handleKeys(properties, selected, {
    choose,
    chooseMatch,
    openMenu(node) {
      const box = boxOf(scene, node);
      const { left, top } = canvas.current!.getBoundingClientRect();
      openMenu(node, { x: left + (box?.left ?? 0), y: top + (box?.top ?? 0) + ROW_HEIGHT });
    },
  });
  const onPointer = (event: MouseEvent): void => {
    const node = pointer.nodeUnder(event);
    if (node === undefined) return;
    setChosen({ path: pathKeyOf(model, node), byKeyboard: false });
    if (event.type === 'click') click(properties, node, event.shiftKey);
    else {
      event.preventDefault();
      pointer.leave();
      openMenu(node, { x: event.clientX, y: event.clientY });
    }
  };

  const shown = pointer.node ?? marked;
  return (
    <div class="flame">
      <div
        ref={scroller}
        class="flame-scroller"
        role="application"
        aria-roledescription="flame graph"
        aria-label={`${properties.label}: ${KEYS}`}
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
          onClick={onPointer}
          onContextMenu={onPointer}
        />
        <div
          style={{ height: `${Math.max(0, rows * ROW_HEIGHT + (isFlipped ? 0 : BOTTOM_MARGIN) - height)}px` }}
        />
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

function click({ model, onZoom, onSource }: FlameGraphProperties, node: number, wantsSource: boolean): void {
  const target = wantsSource ? functionOf(model, node) : undefined;
  if (target !== undefined && onSource !== undefined) onSource(target);
  else onZoom(node);
}

/** Enter in the search leads here, and to the largest match. */
function useJumps(jumps: number, view: RefObject<HTMLElement | null>, toMatch: () => void): void {
  useEffect(() => {
    if (jumps === 0) return;
    view.current!.focus();
    toMatch();
  }, [jumps]);
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
