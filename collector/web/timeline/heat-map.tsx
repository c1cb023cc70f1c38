import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { formatDuration, formatSpan } from '../../../common/flame/format.ts';
import { formatterOf, isCpu, timeScale } from '../../../common/flame/shown-type.ts';
import type { HeatmapAnswer } from '../../api/types.ts';
import type { TimeRange } from '../../store/store.ts';
import { useSize, useTheme } from '../state/use-browser.ts';
import { cellSpan, columnSpan, heatColour, KEY_SHARES, moveCell, topOf } from './heat-model.ts';
import { TimeAxis } from './time-axis.tsx';

interface Properties {
  answer: HeatmapAnswer;
  /** CPU time that a sample stands for. */
  nanosPerSample: number;
  onPick(span: TimeRange): void;
}

/** Columns are stretches of time, rows the time within one: patterns that repeat are seen as lines. */
export function HeatMap({ answer, nanosPerSample, onPick }: Properties) {
  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const { dark } = useTheme();
  const { width, height } = useSize(frame);
  const [cell, setCell] = useState<number>();
  const { columns, rows, cells } = answer;
  const cellMs = (answer.toMs - answer.fromMs) / columns / rows;
  const { factor, of } = timeScale(answer.type, cellMs, nanosPerSample);
  // a short cell may have a sample more of each CPU than fits
  const most = isCpu(answer.type) && answer.cpus > 0 ? answer.cpus : undefined;
  const top = topOf(cells.reduce((a, b) => Math.max(a, b), 0) * factor, most);
  usePaint(canvas, answer, dark, { width, height }, { marked: cell, full: top / factor });
  const cellAt = (event: MouseEvent): number => {
    const bounds = canvas.current!.getBoundingClientRect();
    const column = Math.floor(((event.clientX - bounds.left) / bounds.width) * columns);
    const row = Math.floor(((event.clientY - bounds.top) / bounds.height) * rows);
    return Math.min(columns - 1, Math.max(0, column)) * rows + Math.min(rows - 1, Math.max(0, row));
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const moved = moveCell(answer, cell, event.key);
    if (moved !== undefined) setCell(moved);
    else if (event.key === 'Enter' && cell !== undefined) onPick(columnSpan(answer, cell));
    else return;
    event.preventDefault();
  };
  const columnS = (cellMs * rows) / 1000;
  const said =
    cell === undefined
      ? `Each column is ${formatDuration(columnS)}; each row ${formatDuration(cellMs / 1000)}`
      : `${formatSpan(cellSpan(answer, cell))}: ${formatterOf(answer.type).amount(cells[cell]!)}, ${of(cells[cell]! * factor)}`;
  return (
    <section class="heat" aria-label="Heat map">
      <div
        ref={frame}
        class="heat-plot"
        role="application"
        aria-roledescription="heat map"
        aria-label="Heat map of samples: arrow keys walk the cells, Enter shows the time of one"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: an application takes the keyboard as a whole
        tabIndex={0}
        onKeyDown={onKeyDown}
        onMouseMove={(event) => setCell(cellAt(event))}
        onMouseLeave={() => setCell(undefined)}
        onClick={(event) => onPick(columnSpan(answer, cellAt(event)))}
      >
        <canvas ref={canvas} style={{ width: `${width}px`, height: `${height}px` }} />
      </div>
      <div class="heat-scale" aria-hidden="true">
        <span>0</span>
        <span>+{formatDuration(columnS)}</span>
      </div>
      <TimeAxis span={answer} width={width} />
      <div class="heat-foot">
        <output class="soft">{said}</output>
        <span class="heat-key" role="img" aria-label={`Colours: from 0 to ${of(top)}`}>
          0
          {KEY_SHARES.map((share) => (
            <i key={share} style={{ background: heatColour(share, dark) }} />
          ))}
          {of(top)}
        </span>
      </div>
    </section>
  );
}

function usePaint(
  canvas: { current: HTMLCanvasElement | null },
  { columns, rows, cells }: HeatmapAnswer,
  dark: boolean,
  { width, height }: { width: number; height: number },
  { marked, full }: { marked: number | undefined; full: number },
): void {
  useLayoutEffect(() => {
    const context = canvas.current?.getContext('2d');
    if (!context || width === 0) return;
    const ratio = window.devicePixelRatio || 1;
    context.canvas.width = Math.round(width * ratio);
    context.canvas.height = Math.round(height * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const [w, h] = [width / columns, height / rows];
    for (const [cell, count] of cells.entries()) {
      if (count === 0) continue;
      context.fillStyle = heatColour(Math.min(1, count / full), dark);
      context.fillRect(Math.floor(cell / rows) * w, (cell % rows) * h, Math.ceil(w), Math.ceil(h));
    }
    if (marked === undefined) return;
    context.strokeStyle = dark ? '#ffffff' : '#10151c';
    context.strokeRect(Math.floor(marked / rows) * w, (marked % rows) * h, Math.max(w, 2), Math.max(h, 2));
  });
}
