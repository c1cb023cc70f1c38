import { useMemo, useState } from 'preact/hooks';
import type { HeatmapAnswer, SamplesAnswer, TimelineAnswer } from '../api/types.ts';
import type { TimeRange } from '../store/store.ts';
import { layOutChart, listThreads } from './chart-model.ts';
import { FlameChart } from './flame-chart.tsx';
import { formatCount, plural } from './format.ts';
import { HeatMap } from './heat-map.tsx';
import { ask } from './questions.ts';
import { useAnswer } from './use-answer.ts';
import type { ViewProperties } from './view-properties.ts';

const COLUMNS = 120;
const MIN_ROWS = 4;
const MAX_ROWS = 50;
/** More samples are more than a screen has pixels for. */
const MAX_SAMPLES = 20_000;

/** A row is no shorter than the time between two samples of a CPU, or it would show the sampling itself. */
function rowsFor({ fromMs, toMs, samples, cpuNanos }: TimelineAnswer, brush: TimeRange | undefined): number {
  const spanMs = brush === undefined ? toMs - fromMs : brush.toMs - brush.fromMs;
  const periodMs = samples === 0 ? 10 : cpuNanos / samples / 1e6;
  return Math.min(MAX_ROWS, Math.max(MIN_ROWS, Math.floor(spanMs / COLUMNS / periodMs)));
}

/** What happened when: a heat map of all, and one thread's calls in the order of time. */
export function TimeView({ state, isLive, timeline, change, announce }: ViewProperties) {
  const heat = useAnswer<HeatmapAnswer>(
    ask('heatmap', state, { columns: COLUMNS, rows: rowsFor(timeline, state.brush) }),
    isLive,
  ).value;
  const samples = useAnswer<SamplesAnswer>(ask('samples', state, { limit: MAX_SAMPLES }), isLive).value;
  const [wanted, setWanted] = useState('');
  const threads = useMemo(() => (samples === undefined ? [] : listThreads(samples)), [samples]);
  const thread = threads.find(({ title }) => title === wanted) ?? threads[0];
  const chart = useMemo(
    () => (samples === undefined || thread === undefined ? undefined : layOutChart(samples, thread.thread)),
    [samples, thread?.thread],
  );
  const overview = state.overview ?? { fromMs: Math.round(timeline.fromMs), toMs: Math.round(timeline.toMs) };
  return (
    <>
      {heat !== undefined && <HeatMap answer={heat} onPick={(brush) => change({ brush, overview })} />}
      {samples !== undefined && thread !== undefined && chart !== undefined && (
        <>
          <div class="heading">
            <label>
              Thread{' '}
              <select value={thread.title} onChange={(event) => setWanted(event.currentTarget.value)}>
                {threads.slice(0, 200).map(({ title, samples: count }) => (
                  <option key={title} value={title}>
                    {title} ({formatCount(count)})
                  </option>
                ))}
              </select>
            </label>
            <p class="summary">
              {samples.returned < samples.samples
                ? `the first ${formatCount(samples.returned)} of ${formatCount(samples.samples)} samples: brush a shorter time`
                : plural(samples.samples, 'sample')}
            </p>
          </div>
          <FlameChart {...{ chart, announce }} answer={samples} />
        </>
      )}
    </>
  );
}
