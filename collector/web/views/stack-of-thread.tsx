import { formatClock, formatDuration, plural } from '../../../common/flame/format.ts';
import {
  OFF_CPU,
  THREAD_STATE,
  THREAD_WAKER,
  WAIT_REPORTED_MS,
} from '../../../common/profile/model/thread-types.ts';
import type { SamplesAnswer } from '../../api/types.ts';
import type { ThreadName } from '../../query/threads.ts';
import type { ValueCount } from '../../query/values.ts';
import { askSpan, formatFilter } from '../state/questions.ts';
import type { UrlState } from '../state/url-state.ts';
import { useAnswer } from '../state/use-answer.ts';
import { stateLabel } from '../timeline/state-colours.ts';

/** CPU samples come that seldom at the usual rates. */
const NEAR_MS = 200;

interface Properties {
  state: UrlState;
  thread: ThreadName;
  timeMs: number;
  isRunning: boolean;
  change(change: Partial<UrlState>): void;
}

/** What a thread did at a time: the wait that was under way, or the next CPU sample. */
export function StackOfThread({ state, thread, timeMs, isRunning, change }: Properties) {
  const own = formatFilter(
    (['host', 'pid', 'tid'] as const).map((key) => ({ key, operator: '=', values: [String(thread[key])] })),
  );
  const where = `${state.where} ${own}`.trim();
  const type = isRunning ? 'cpu' : OFF_CPU;
  const span = {
    fromMs: Math.floor(timeMs),
    toMs: Math.ceil(timeMs) + (isRunning ? NEAR_MS : WAIT_REPORTED_MS),
  };
  const { value: answer } = useAnswer<SamplesAnswer>(
    askSpan('samples', span, { type, where, limit: 1 }),
    false,
  );
  const endMs = answer?.times[0];
  const told = useLabels(endMs, { type, where });
  if (answer === undefined) return null;
  const frames = framesOf(answer);
  const kernel = frames.filter(({ kind }) => kind === 'kernel');
  return (
    <section class="thread-stack" aria-label="Stack">
      <p>
        {describe(answer, told, { timeMs, isRunning })}{' '}
        <button
          type="button"
          class="button"
          onClick={() => change({ view: 'icicle', type: isRunning ? '' : OFF_CPU, where, zoom: '' })}
        >
          Flame graph of the thread
        </button>
      </p>
      {kernel.length > 0 && (
        <details>
          <summary>{plural(kernel.length, 'frame')} of the kernel</summary>
          <Frames frames={kernel} />
        </details>
      )}
      <Frames frames={frames.filter(({ kind }) => kind !== 'kernel')} />
    </section>
  );
}

interface Told {
  state: string;
  waker: string;
}

/** Of the sample: the rows of single samples have none. */
function useLabels(endMs: number | undefined, { type, where }: { type: string; where: string }): Told {
  const path = (label: string) =>
    endMs === undefined
      ? undefined
      : askSpan('values', { fromMs: endMs, toMs: endMs + 1 }, { type, where, label, limit: 1 });
  const state = useAnswer<{ values: ValueCount[] }>(path(THREAD_STATE), false).value?.values[0]?.value ?? '';
  const waker = useAnswer<{ values: ValueCount[] }>(path(THREAD_WAKER), false).value?.values[0]?.value ?? '';
  return { state, waker };
}

function describe(
  { times, counts }: SamplesAnswer,
  { state, waker }: Told,
  { timeMs, isRunning }: { timeMs: number; isRunning: boolean },
): string {
  const [endMs, count] = [times[0], counts[0]];
  if (endMs === undefined || count === undefined)
    return isRunning
      ? 'No CPU sample of it near this time.'
      : 'No stack of it was taken then, or it is not told yet.';
  if (isRunning) return `Running, sampled at ${formatMoment(endMs)}.`;
  const beganMs = endMs - count / 1e6;
  const ended = waker === '' ? '' : `, ended by ${waker}`;
  const said = `${state === 'runnable' ? 'Ready to run' : `Waiting for ${stateLabel(state) || 'something'}`}: ${formatDuration(count / 1e9)} until ${formatMoment(endMs)}${ended}.`;
  return beganMs > timeMs + 1 ? `No stack was taken at ${formatMoment(timeMs)}; the next: ${said}` : said;
}

interface ShownFrame {
  name: string;
  library: string;
  kind: string;
}

function Frames({ frames }: { frames: readonly ShownFrame[] }) {
  return (
    <ol class="stack-frames">
      {frames.map(({ name, library }, i) => (
        <li key={`${i} ${name}`}>
          {name} <span class="soft">{library}</span>
        </li>
      ))}
    </ol>
  );
}

/** The innermost first, without the process. */
function framesOf({ nodes, stackTable }: SamplesAnswer): ShownFrame[] {
  const { strings, kinds, frames, nodes: tree } = stackTable;
  const found: ShownFrame[] = [];
  for (let node = nodes[0] ?? 0; node > 0 && tree.parent[node] !== 0; node = tree.parent[node]!) {
    const frame = tree.frame[node]!;
    const file = strings[frames.file[frame]!] || strings[frames.mapping[frame]!] || '';
    const library = file.slice(file.lastIndexOf('/') + 1);
    found.push({ name: strings[frames.name[frame]!]!, library, kind: kinds[frames.kind[frame]!]! });
  }
  return found;
}

/** The time of day with milliseconds. */
export const formatMoment = (ms: number): string =>
  `${formatClock(ms, 0)}.${String(Math.floor(ms % 1000)).padStart(3, '0')}`;
