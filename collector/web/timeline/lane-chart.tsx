import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { LanesAnswer } from '../../api/types.ts';
import type { TimeRange } from '../../store/store.ts';
import { Labels } from '../flame/labels.ts';
import type { Theme } from '../state/theme.ts';
import { useSize, useTheme } from '../state/use-browser.ts';
import { type LanePlace, MIN_SPAN_MS, movePlace, stepSpan, zoomAround } from './lane-model.ts';
import { stateColour } from './state-colours.ts';
import { TimeAxis } from './time-axis.tsx';

const ROW_HEIGHT = 22;
const GAP = 4;
/** Names of threads, in CSS pixels. */
const GUTTER = 220;
const PADDING = 8;
const FONT = '12px system-ui, sans-serif';
/** What is known by the interval alone, not when. */
const SPREAD_ALPHA = 0.55;
/** A shorter drag is a click. */
const MIN_DRAG = 4;

interface Properties {
  answer: LanesAnswer;
  chosen: LanePlace | undefined;
  onChoose(place: LanePlace): void;
  onHover(place: LanePlace | undefined): void;
  onZoom(span: TimeRange): void;
}

/** A lane for each thread. The canvas stays as large as the viewport. */
export function LaneChart({ answer, chosen, onChoose, onHover, onZoom }: Properties) {
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useTheme();
  const size = useSize(scroller);
  const [scrollTop, setScrollTop] = useState(0);
  const [drag, setDrag] = useState<{ from: number; to: number }>();
  usePaint(canvas, { answer, theme, ...size, scrollTop, chosen, drag });
  const width = size.width - GUTTER;
  const xOf = (event: MouseEvent): number => {
    const { left } = canvas.current!.getBoundingClientRect();
    return Math.min(width, Math.max(0, event.clientX - left - GUTTER));
  };
  const placeAt = (event: MouseEvent): LanePlace | undefined => {
    const { top } = canvas.current!.getBoundingClientRect();
    const thread = Math.floor((event.clientY - top + scrollTop) / ROW_HEIGHT);
    const step = Math.min(answer.steps - 1, Math.floor((xOf(event) / width) * answer.steps));
    return thread < answer.threads.length ? { thread, step } : undefined;
  };
  const timeAt = (x: number): number => answer.fromMs + (x / width) * (answer.toMs - answer.fromMs);
  const endDrag = (event: MouseEvent): void => {
    if (drag === undefined) return;
    setDrag(undefined);
    const [from, to] = [drag.from, xOf(event)].sort((a, b) => a - b) as [number, number];
    const place = placeAt(event);
    if (to - from < MIN_DRAG) place !== undefined && onChoose(place);
    else onZoom(atLeast({ fromMs: Math.floor(timeAt(from)), toMs: Math.ceil(timeAt(to)) }));
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const moved = movePlace(answer, chosen, event.key);
    const factor = { '+': 0.5, '-': 2 }[event.key];
    if (moved !== undefined) {
      onChoose(moved);
      scrollTo(scroller.current!, moved.thread);
    } else if (factor !== undefined) onZoom(zoomAround(answer, middleOf(answer, chosen), factor));
    else return;
    event.preventDefault();
  };
  return (
    <>
      <div
        ref={scroller}
        class="flame-scroller chart lanes"
        role="application"
        aria-roledescription="lanes of threads"
        aria-label="Threads over time: up and down choose a thread, left and right a time, plus and minus zoom"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: an application takes the keyboard as a whole
        tabIndex={0}
        onScroll={() => setScrollTop(scroller.current!.scrollTop)}
        onKeyDown={onKeyDown}
        onMouseDown={(event) => event.button === 0 && setDrag({ from: xOf(event), to: xOf(event) })}
        onMouseMove={(event) => {
          onHover(placeAt(event));
          if (drag !== undefined) setDrag({ ...drag, to: xOf(event) });
        }}
        onMouseUp={endDrag}
        onMouseLeave={() => {
          onHover(undefined);
          setDrag(undefined);
        }}
      >
        <canvas ref={canvas} style={{ width: `${size.width}px`, height: `${size.height}px` }} />
        <div style={{ height: `${Math.max(0, answer.threads.length * ROW_HEIGHT - size.height)}px` }} />
      </div>
      <div class="lane-axis" style={{ marginLeft: `${GUTTER}px` }}>
        <TimeAxis span={answer} width={Math.max(0, width)} />
      </div>
    </>
  );
}

const atLeast = ({ fromMs, toMs }: TimeRange): TimeRange => ({
  fromMs,
  toMs: Math.max(toMs, fromMs + MIN_SPAN_MS),
});

function middleOf(answer: LanesAnswer, chosen: LanePlace | undefined): number {
  const { fromMs, toMs } = chosen === undefined ? answer : stepSpan(answer, chosen.step);
  return (fromMs + toMs) / 2;
}

function scrollTo(view: HTMLElement, thread: number): void {
  const top = thread * ROW_HEIGHT;
  if (top < view.scrollTop || top + ROW_HEIGHT > view.scrollTop + view.clientHeight) view.scrollTop = top;
}

interface Scene {
  answer: LanesAnswer;
  theme: Theme;
  width: number;
  height: number;
  scrollTop: number;
  chosen: LanePlace | undefined;
  drag: { from: number; to: number } | undefined;
}

function usePaint(canvas: { current: HTMLCanvasElement | null }, scene: Scene): void {
  const labels = useRef<Labels | undefined>(undefined);
  useLayoutEffect(() => {
    const context = canvas.current?.getContext('2d', { alpha: false });
    if (!context || scene.width === 0) return;
    const { answer, theme, width, height, scrollTop, drag } = scene;
    const ratio = window.devicePixelRatio || 1;
    context.canvas.width = Math.round(width * ratio);
    context.canvas.height = Math.round(height * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = FONT;
    context.textBaseline = 'middle';
    context.fillStyle = theme.background;
    context.fillRect(0, 0, width, height);
    labels.current ??= new Labels(context);
    const first = Math.floor(scrollTop / ROW_HEIGHT);
    const last = Math.min(answer.threads.length - 1, Math.floor((scrollTop + height) / ROW_HEIGHT));
    for (let thread = first; thread <= last; thread++) paintLane(context, labels.current, scene, thread);
    if (drag !== undefined) {
      context.fillStyle = theme.hover;
      context.fillRect(GUTTER + Math.min(drag.from, drag.to), 0, Math.abs(drag.to - drag.from), height);
    }
    canvas.current!.dataset['lanes'] = String(last - first + 1);
  });
}

function paintLane(context: CanvasRenderingContext2D, labels: Labels, scene: Scene, index: number): void {
  const { answer, theme, width, scrollTop, chosen } = scene;
  const { process, thread, tid, steps, states, shares, spread } = answer.threads[index]!;
  const top = index * ROW_HEIGHT - scrollTop;
  const name = thread === process || thread === '' ? process : `${process} · ${thread}`;
  context.fillStyle = theme.text;
  const id = ` ${tid}`;
  const idWidth = context.measureText(id).width;
  const label = labels.fit(name, GUTTER - 2 * PADDING - idWidth);
  context.fillText(label, PADDING, top + ROW_HEIGHT / 2);
  context.fillStyle = theme.faintText;
  context.fillText(id, GUTTER - PADDING - idWidth, top + ROW_HEIGHT / 2);
  const stepWidth = (width - GUTTER) / answer.steps;
  const height = ROW_HEIGHT - GAP;
  let [step, filled] = [-1, 0];
  for (let i = 0; i < steps.length; i++) {
    if (steps[i] !== step) [step, filled] = [steps[i]!, 0];
    const left = GUTTER + Math.round(step * stepWidth);
    const right = Math.max(left + 1, GUTTER + Math.round((step + 1) * stepWidth));
    const share = Math.min(shares[i]!, 1 - filled);
    context.globalAlpha = spread[i]! > shares[i]! / 2 ? SPREAD_ALPHA : 1;
    context.fillStyle = stateColour(answer.states[states[i]!]!, theme.dark) ?? theme.dimmed;
    context.fillRect(left, top + GAP / 2 + height * (1 - filled - share), right - left, height * share);
    filled += share;
  }
  context.globalAlpha = 1;
  if (chosen?.thread !== index) return;
  context.strokeStyle = theme.ring;
  context.lineWidth = 1.5;
  context.strokeRect(
    GUTTER + chosen.step * stepWidth - 1,
    top + 1,
    Math.max(stepWidth, 2) + 2,
    ROW_HEIGHT - 2,
  );
}
