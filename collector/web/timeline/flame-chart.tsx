import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { formatClock, formatDuration, plural } from '../../../common/flame/format.ts';
import { kindLabel, toKind } from '../../../common/flame/kinds.ts';
import type { SamplesAnswer } from '../../api/types.ts';
import { Labels } from '../flame/labels.ts';
import type { Theme } from '../state/theme.ts';
import { useSize, useTheme } from '../state/use-browser.ts';
import { boxAt, type Chart, type ChartBox, moveBox } from './chart-model.ts';
import { TimeAxis } from './time-axis.tsx';

const ROW_HEIGHT = 20;
const FONT = '12px system-ui, sans-serif';
const MIN_LABEL_WIDTH = 26;
const PADDING = 5;

interface Properties {
  answer: SamplesAnswer;
  chart: Chart;
  announce(text: string): void;
}

/** One thread over time: left to right are real milliseconds. The canvas stays as large as the viewport. */
export function FlameChart({ answer, chart, announce }: Properties) {
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useTheme();
  const size = useSize(scroller);
  const [scrollTop, setScrollTop] = useState(0);
  const [chosen, setChosen] = useState<ChartBox>();
  const shown = chosen !== undefined && chart.boxes.includes(chosen) ? chosen : undefined;
  usePaint(canvas, { answer, chart, theme, ...size, scrollTop, chosen: shown });
  const boxUnder = (event: MouseEvent): ChartBox | undefined => {
    const bounds = canvas.current!.getBoundingClientRect();
    const { fromMs, toMs } = answer;
    const timeMs = fromMs + ((event.clientX - bounds.left) / bounds.width) * (toMs - fromMs);
    return boxAt(chart, timeMs, Math.floor((event.clientY - bounds.top + scrollTop) / ROW_HEIGHT));
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const moved = moveBox(chart, shown, event.key);
    if (moved === undefined) return;
    setChosen(moved);
    announce(describe(answer, moved));
    const view = scroller.current!;
    const top = moved.depth * ROW_HEIGHT;
    if (top < view.scrollTop || top + ROW_HEIGHT > view.scrollTop + view.clientHeight) view.scrollTop = top;
    event.preventDefault();
  };
  return (
    <>
      <div
        ref={scroller}
        class="flame-scroller chart"
        role="application"
        aria-roledescription="flame chart"
        aria-label="Flame chart: arrow keys walk the calls in the order of time"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: an application takes the keyboard as a whole
        tabIndex={0}
        onScroll={() => setScrollTop(scroller.current!.scrollTop)}
        onKeyDown={onKeyDown}
        onMouseMove={(event) => setChosen(boxUnder(event))}
      >
        <canvas ref={canvas} style={{ width: `${size.width}px`, height: `${size.height}px` }} />
        <div style={{ height: `${Math.max(0, chart.rows * ROW_HEIGHT - size.height)}px` }} />
      </div>
      <TimeAxis span={answer} width={size.width} />
      <output class="soft chart-note">
        {shown === undefined
          ? 'Time runs left to right; each box is a call that was seen'
          : describe(answer, shown)}
      </output>
    </>
  );
}

function describe({ stackTable, fromMs, toMs }: SamplesAnswer, box: ChartBox): string {
  const { strings, kinds, frames } = stackTable;
  const name = strings[frames.name[box.frame]!];
  const kind = kindLabel(toKind(kinds[frames.kind[box.frame]!]!));
  const at = `${formatClock(box.startMs, toMs - fromMs)}.${String(Math.floor(box.startMs % 1000)).padStart(3, '0')}`;
  return `${name}, ${kind}, at ${at} for about ${formatDuration((box.endMs - box.startMs) / 1000)}, ${plural(box.samples, 'sample')}`;
}

interface Scene {
  answer: SamplesAnswer;
  chart: Chart;
  theme: Theme;
  width: number;
  height: number;
  scrollTop: number;
  chosen: ChartBox | undefined;
}

function usePaint(canvas: { current: HTMLCanvasElement | null }, scene: Scene): void {
  const labels = useRef<Labels | undefined>(undefined);
  useLayoutEffect(() => {
    const context = canvas.current?.getContext('2d', { alpha: false });
    if (!context || scene.width === 0) return;
    const ratio = window.devicePixelRatio || 1;
    context.canvas.width = Math.round(scene.width * ratio);
    context.canvas.height = Math.round(scene.height * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = FONT;
    context.textBaseline = 'middle';
    context.fillStyle = scene.theme.background;
    context.fillRect(0, 0, scene.width, scene.height);
    labels.current ??= new Labels(context);
    const pen: Pen = { context, labels: labels.current, painted: [] };
    let drawn = 0;
    for (const box of scene.chart.boxes) if (paintBox(pen, scene, box)) drawn++;
    canvas.current!.dataset['boxes'] = String(drawn);
  });
}

interface Pen {
  context: CanvasRenderingContext2D;
  labels: Labels;
  /** How far each row is painted: of boxes narrower than a pixel one is enough there. */
  painted: number[];
}

/** Whether the box was painted. */
function paintBox({ context, labels, painted }: Pen, scene: Scene, box: ChartBox): boolean {
  const { answer, theme, width, height, scrollTop, chosen } = scene;
  const top = box.depth * ROW_HEIGHT - scrollTop;
  const scale = width / (answer.toMs - answer.fromMs);
  const left = Math.max(0, (box.startMs - answer.fromMs) * scale);
  const right = Math.min(width, (box.endMs - answer.fromMs) * scale);
  if (top + ROW_HEIGHT < 0 || top > height || right <= left) return false;
  if (right <= (painted[box.depth] ?? -1)) return false;
  painted[box.depth] = Math.ceil(right);
  const { strings, kinds, frames } = answer.stackTable;
  const name = strings[frames.name[box.frame]!]!;
  const boxWidth = Math.max(0.6, right - left - (right - left > 3 ? 1 : 0));
  context.fillStyle = theme.fill(toKind(kinds[frames.kind[box.frame]!]!), name);
  context.fillRect(left, top, boxWidth, ROW_HEIGHT - 1);
  if (box === chosen) {
    context.fillStyle = theme.hover;
    context.fillRect(left, top, boxWidth, ROW_HEIGHT - 1);
  }
  if (boxWidth < MIN_LABEL_WIDTH) return true;
  context.fillStyle = theme.text;
  const label = labels.fit(name, boxWidth - 2 * PADDING);
  if (label !== '') context.fillText(label, left + PADDING, top + ROW_HEIGHT / 2);
  return true;
}
