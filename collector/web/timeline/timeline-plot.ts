/** The drawing of the timeline, by uPlot. */
import uPlot from 'uplot';
import type { TimeRange } from '../../store/store.ts';
import { MAX_AREAS, plotColumns, type TimelineData } from './timeline-data.ts';
import { labelsWidth, timeLabels } from './timeline-ticks.ts';

export interface PlotScene {
  data: TimelineData;
  brush: TimeRange | undefined;
  /** Of another kind: what is compared with. */
  base: TimeRange | undefined;
  /** One an area. */
  colours: readonly string[];
  isDark: boolean;
}

export interface PlotEvents {
  /** Ends of what was drawn over, in milliseconds. */
  onBrush(aMs: number, bMs: number, isShift: boolean): void;
  /** A click without a drag. */
  onClear(): void;
  /** The step under the pointer. */
  onHover(step: number | undefined): void;
}

/** Distances of lines: 1, 2, 2.5 and 5 times each power of ten. */
const DECIMAL_STEPS = Array.from({ length: 40 }, (_, i) => i - 16).flatMap((power) =>
  [1, 2, 2.5, 5].map((step) => Number(`${step}e${power}`)),
);

const FONT = '11px system-ui, sans-serif';
/** More where labels need it. */
const Y_AXIS_WIDTH = 34;
const Y_AXIS_GAP = 4;
const X_AXIS_HEIGHT = 22;
/** A drag that is shorter is a click. */
const MIN_DRAG = 3;
const INKS = {
  light: {
    text: '#59636f',
    line: '#e3e6eb',
    veil: 'rgb(255 255 255 / 0.66)',
    edge: '#2f62c9',
    base: '#8a3fb0',
  },
  dark: { text: '#9aa4b1', line: '#2a3038', veil: 'rgb(21 24 29 / 0.66)', edge: '#8ab4ff', base: '#d9a0f5' },
};

export class TimelinePlot {
  #scene: PlotScene;
  readonly #plot: uPlot;
  readonly #events: PlotEvents;

  constructor(
    target: HTMLElement,
    size: { width: number; height: number },
    scene: PlotScene,
    events: PlotEvents,
  ) {
    this.#scene = scene;
    this.#events = events;
    this.#plot = new uPlot(this.#options(size), plotColumns(scene.data), target);
    let isDragged = false;
    let isShift = false;
    const { over } = this.#plot;
    over.addEventListener('mousedown', (event) => {
      isDragged = false;
      isShift = event.shiftKey;
    });
    over.addEventListener('click', () => !isDragged && events.onClear());
    over.addEventListener('mouseleave', () => events.onHover(undefined));
    this.#plot.hooks.setSelect = [
      (plot) => {
        const { left, width } = plot.select;
        isDragged = width >= MIN_DRAG;
        if (!isDragged) return;
        plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        events.onBrush(plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x'), isShift);
      },
    ];
  }

  update(scene: PlotScene): void {
    const isNew = scene.data !== this.#scene.data;
    this.#scene = scene;
    if (isNew) this.#plot.setData(plotColumns(scene.data));
    else this.#plot.redraw(false, true);
  }

  resize(size: { width: number; height: number }): void {
    this.#plot.setSize(size);
  }

  destroy(): void {
    this.#plot.destroy();
  }

  get #inks() {
    return this.#scene.isDark ? INKS.dark : INKS.light;
  }

  #options(size: { width: number; height: number }): uPlot.Options {
    const axis: uPlot.Axis = {
      font: FONT,
      stroke: () => this.#inks.text,
      grid: { stroke: () => this.#inks.line, width: 1 },
      ticks: { show: false },
    };
    const area: uPlot.Series = {
      fill: (_, index) => this.#scene.colours[index - 1] ?? 'transparent',
      width: 0,
      points: { show: false },
      paths: uPlot.paths.stepped!({ align: 1 }),
    };
    return {
      ...size,
      ms: 1,
      padding: [6, 0, 0, 0],
      legend: { show: false },
      cursor: {
        y: false,
        points: { show: false },
        drag: { x: true, y: false, setScale: false, dist: MIN_DRAG },
      },
      scales: {
        x: { time: true, range: () => [this.#scene.data.fromMs, this.#scene.data.toMs] },
        y: { range: (_, __, max) => [0, max > 0 ? max * 1.05 : 1] },
      },
      axes: [
        {
          ...axis,
          size: X_AXIS_HEIGHT,
          gap: 3,
          space: 90,
          grid: { show: false },
          values: (plot, times) => timeLabels(times, this.#scene.data, plot.width - Y_AXIS_WIDTH),
        },
        {
          ...axis,
          size: (_, labels) => Math.max(Y_AXIS_WIDTH, labelsWidth(labels ?? []) + Y_AXIS_GAP),
          gap: Y_AXIS_GAP,
          space: 26,
          incrs: () => [...(this.#scene.data.scale.steps ?? DECIMAL_STEPS)],
          values: (_, heights) => heights.map(this.#scene.data.scale.label),
        },
      ],
      series: [{}, ...Array.from({ length: MAX_AREAS + 1 }, () => area)],
      hooks: {
        draw: [(plot) => this.#drawSpans(plot)],
        setCursor: [(plot) => this.#hover(plot)],
      },
    };
  }

  #hover({ cursor }: uPlot): void {
    const steps = this.#scene.data.areas[0]?.heights.length ?? 0;
    const isInside = cursor.left !== undefined && cursor.left >= 0 && cursor.idx != null;
    const { fromMs, stepMs } = this.#scene.data;
    const step = isInside ? Math.floor((this.#plot.posToVal(cursor.left!, 'x') - fromMs) / stepMs) : -1;
    this.#events.onHover(step >= 0 && step < steps ? step : undefined);
  }

  /** A veil over all that is not brushed, and lines at the ends; the base of a comparison is framed. */
  #drawSpans(plot: uPlot): void {
    const { brush, base } = this.#scene;
    const { ctx, bbox } = plot;
    const clamp = (x: number): number => Math.min(bbox.left + bbox.width, Math.max(bbox.left, x));
    const xOf = (ms: number): number => clamp(plot.valToPos(ms, 'x', true));
    ctx.save();
    if (brush !== undefined) {
      const [left, right] = [xOf(brush.fromMs), xOf(brush.toMs)];
      ctx.fillStyle = this.#inks.veil;
      ctx.fillRect(bbox.left, bbox.top, left - bbox.left, bbox.height);
      ctx.fillRect(right, bbox.top, bbox.left + bbox.width - right, bbox.height);
      this.#frame(ctx, bbox, left, right, this.#inks.edge);
    }
    if (base !== undefined) this.#frame(ctx, bbox, xOf(base.fromMs), xOf(base.toMs), this.#inks.base);
    ctx.restore();
  }

  #frame(ctx: CanvasRenderingContext2D, bbox: uPlot.BBox, left: number, right: number, colour: string): void {
    const width = Math.max(1, Math.round(window.devicePixelRatio * 1.5));
    ctx.fillStyle = colour;
    ctx.fillRect(left - width / 2, bbox.top, width, bbox.height);
    ctx.fillRect(right - width / 2, bbox.top, width, bbox.height);
    ctx.fillRect(left, bbox.top, right - left, width);
  }
}
