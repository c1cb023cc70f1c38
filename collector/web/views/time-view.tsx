import { useMemo, useState } from 'preact/hooks';
import { formatDuration } from '../../../common/flame/format.ts';
import { formatterOf } from '../../../common/flame/shown-type.ts';
import type { HeatmapAnswer, SamplesAnswer, ThreadsAnswer, TimelineAnswer } from '../../api/types.ts';
import type { ThreadCount } from '../../query/threads.ts';
import type { TimeRange } from '../../store/store.ts';
import { ask, formatFilter } from '../state/questions.ts';
import { useAnswer } from '../state/use-answer.ts';
import type { ViewProperties } from '../state/view-properties.ts';
import { layOutChart, listThreads, threadTitle } from '../timeline/chart-model.ts';
import { FlameChart } from '../timeline/flame-chart.tsx';
import { HeatMap } from '../timeline/heat-map.tsx';
import { Waiting } from './waiting.tsx';

const COLUMNS = 120;
const MIN_ROWS = 4;
const MAX_ROWS = 50;
/** More samples are more than a screen has pixels for. */
const MAX_SAMPLES = 20_000;
/** Of a longer time: two for each pixel of a wide screen. */
const STEPS = 4000;
const MAX_THREADS = 200;

/** A row is no shorter than the time between two samples of a CPU, or it would show the sampling itself. */
function rowsFor({ fromMs, toMs, samples, cpuNanos }: TimelineAnswer, brush: TimeRange | undefined): number {
  const spanMs = brush === undefined ? toMs - fromMs : brush.toMs - brush.fromMs;
  const periodMs = samples === 0 ? 10 : cpuNanos / samples / 1e6;
  return Math.min(MAX_ROWS, Math.max(MIN_ROWS, Math.floor(spanMs / COLUMNS / periodMs)));
}

/** What happened when: a heat map of all, and one thread's calls in the order of time. */
export function TimeView(properties: ViewProperties) {
  const { state, isLive, timeline, change } = properties;
  const heat = useAnswer<HeatmapAnswer>(
    ask('heatmap', state, { columns: COLUMNS, rows: rowsFor(timeline, state.brush) }),
    isLive,
  );
  const overview = state.overview ?? { fromMs: Math.round(timeline.fromMs), toMs: Math.round(timeline.toMs) };
  if (heat.value === undefined) return <Waiting error={heat.error} />;
  return (
    <>
      <HeatMap
        answer={heat.value}
        nanosPerSample={timeline.samples === 0 ? 0 : timeline.cpuNanos / timeline.samples}
        onPick={(brush) => change({ brush, overview })}
      />
      <ThreadChart {...properties} />
    </>
  );
}

const keyOf = ({ host, pid, tid }: ThreadCount): string => `${host}/${pid}/${tid}`;

function whereOf({ host, pid, tid }: ThreadCount): string {
  const terms = { host, pid, tid };
  return formatFilter(
    Object.entries(terms).map(([key, value]) => ({ key, operator: '=', values: [String(value)] })),
  );
}

/** One thread, out of a list that can be searched. */
function ThreadChart({ state, isLive, announce }: ViewProperties) {
  const [contains, setContains] = useState('');
  const [wanted, setWanted] = useState<ThreadCount>();
  const path = ask('threads', state, { contains, limit: MAX_THREADS });
  const { value: list } = useAnswer<ThreadsAnswer>(path, isLive);
  const found = list?.threads ?? [];
  const thread = found.find((each) => wanted !== undefined && keyOf(each) === keyOf(wanted)) ?? found[0];
  const where = thread === undefined ? '' : `${state.where} ${whereOf(thread)}`.trim();
  const { value: samples } = useAnswer<SamplesAnswer>(
    thread && ask('samples', { ...state, where }, { limit: MAX_SAMPLES, steps: STEPS }),
    isLive,
  );
  const chart = useMemo(() => {
    const [first] = samples === undefined ? [] : listThreads(samples);
    return samples && first && layOutChart(samples, first.thread);
  }, [samples]);
  return (
    <>
      <div class="heading thread-choice">
        <label>
          Thread{' '}
          <select
            value={thread && keyOf(thread)}
            onChange={(event) => setWanted(found.find((each) => keyOf(each) === event.currentTarget.value))}
          >
            {found.map((each) => (
              <option key={keyOf(each)} value={keyOf(each)}>
                {threadTitle(each)}: {list && formatterOf(list.type).amount(each.samples)}
              </option>
            ))}
          </select>
        </label>
        <input
          type="search"
          class="base-filter"
          placeholder="Find a thread: name, PID or TID"
          aria-label="Find a thread"
          value={contains}
          onInput={(event) => setContains(event.currentTarget.value)}
        />
        <p class="summary">{describe(samples, list)}</p>
      </div>
      {samples !== undefined && chart !== undefined && (
        <FlameChart {...{ chart, announce }} answer={samples} />
      )}
    </>
  );
}

function describe(samples: SamplesAnswer | undefined, list: ThreadsAnswer | undefined): string {
  if (list !== undefined && list.threadCount === 0) return 'No thread matches';
  if (samples === undefined) return '';
  const { of, cell } = formatterOf(samples.type);
  const all = of(samples.samples);
  if (samples.stepMs !== undefined)
    return `${all}: every ${formatDuration(samples.stepMs / 1000)} its most frequent stack. Select a shorter time for single samples.`;
  return samples.returned < samples.samples
    ? `Showing ${cell(samples.returned)} of ${all}. Select a shorter time.`
    : all;
}
