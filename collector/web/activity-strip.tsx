import { useLayoutEffect, useRef } from 'preact/hooks';
import type { FlameModel } from './flame-model.ts';
import { formatDuration } from './format.ts';
import { useSize } from './use-browser.ts';

/** How many CPUs were busy, step by step over the range. */
export function ActivityStrip({ model, isDark }: { model: FlameModel; isDark: boolean }) {
  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const { width, height } = useSize(frame);
  const stepMs = (model.toMs - model.fromMs) / model.timeline.length;
  const nanosPerSample = model.samples === 0 ? 0 : model.cpuNanos / model.samples;
  const busy = model.timeline.map((samples) => (samples * nanosPerSample) / (stepMs * 1e6));
  const scale = Math.max(model.cpus, ...busy, 0.1);
  useLayoutEffect(() => {
    const context = canvas.current?.getContext('2d');
    if (!context || width === 0) return;
    const ratio = window.devicePixelRatio || 1;
    context.canvas.width = Math.round(width * ratio);
    context.canvas.height = Math.round(height * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = isDark ? '#5b84c4' : '#8fb0e3';
    const step = width / busy.length;
    busy.forEach((value, i) => {
      const bar = (value / scale) * height;
      if (bar > 0)
        context.fillRect(i * step, height - Math.max(bar, 1), Math.max(step - 1, 1), Math.max(bar, 1));
    });
  });
  const seconds = (model.toMs - model.fromMs) / 1000;
  // An agent that has just started says nothing of the time before.
  const firstStep = Math.max(
    0,
    busy.findIndex((value) => value > 0),
  );
  const mean = model.cpuNanos / 1e9 / (seconds * (1 - firstStep / busy.length));
  return (
    <figure class="activity" aria-label={`On average ${mean.toFixed(2)} CPUs busy`}>
      <div class="activity-axis" aria-hidden="true">
        <span>{model.cpus > 0 ? `${model.cpus} CPUs` : 'busy'}</span>
      </div>
      <div ref={frame} class="activity-plot">
        <canvas ref={canvas} style={{ width: `${width}px`, height: `${height}px` }} />
      </div>
      <div class="activity-times" aria-hidden="true">
        <span>{formatDuration(seconds)} ago</span>
        <span>{mean.toFixed(2)} CPUs busy on average</span>
        <span>now</span>
      </div>
    </figure>
  );
}
