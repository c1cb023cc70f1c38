import { useState } from 'preact/hooks';
import { formatShare, plural } from '../../../common/flame/format.ts';
import { valueFormatter } from '../../../common/profile/model/value-format.ts';
import type { LanesAnswer } from '../../api/types.ts';
import { ask } from '../state/questions.ts';
import { useAnswer } from '../state/use-answer.ts';
import { useTheme } from '../state/use-browser.ts';
import type { ViewProperties } from '../state/view-properties.ts';
import { LaneChart } from '../timeline/lane-chart.tsx';
import { type LanePlace, sharesAt, stepSpan } from '../timeline/lane-model.ts';
import { stateColour, stateLabel } from '../timeline/state-colours.ts';
import { formatMoment, StackOfThread } from './stack-of-thread.tsx';
import { Waiting } from './waiting.tsx';

const STEPS = 600;
const MAX_THREADS = 100;
const { cell: timeText } = valueFormatter({ type: '', unit: 'nanoseconds' });

/** Lanes of threads over time, coloured by what each did; a click shows the stack. */
export function ThreadsView({ state, isLive, timeline, change, announce }: ViewProperties) {
  const { value: answer, error } = useAnswer<LanesAnswer>(
    ask('lanes', state, { steps: STEPS, limit: MAX_THREADS, type: undefined }),
    isLive,
  );
  const [chosen, setChosen] = useState<{ tid: number; pid: number; host: string; timeMs: number }>();
  const [hovered, setHovered] = useState<LanePlace>();
  if (answer === undefined) return <Waiting error={error} />;
  if (answer.threads.length === 0)
    return <p class="hint">No thread in this time. The agent counts what threads do with --off-cpu.</p>;
  const place = chosen && placeOf(answer, chosen);
  const overview = state.overview ?? { fromMs: Math.round(timeline.fromMs), toMs: Math.round(timeline.toMs) };
  const choose = (next: LanePlace): void => {
    const { tid, pid, host } = answer.threads[next.thread]!;
    const { fromMs, toMs } = stepSpan(answer, next.step);
    setChosen({ tid, pid, host, timeMs: (fromMs + toMs) / 2 });
    announce(describe(answer, next));
  };
  return (
    <>
      <div class="heading">
        <Key answer={answer} />
        <p class="summary">
          {answer.threadCount > answer.threads.length
            ? `${answer.threads.length} of ${plural(answer.threadCount, 'thread')}, those first that did most`
            : plural(answer.threadCount, 'thread')}
        </p>
      </div>
      <LaneChart
        {...{ answer }}
        chosen={place}
        onChoose={choose}
        onHover={setHovered}
        onZoom={(brush) =>
          change({
            brush,
            overview: {
              fromMs: Math.min(overview.fromMs, brush.fromMs),
              toMs: Math.max(overview.toMs, brush.toMs),
            },
          })
        }
      />
      <output class="soft chart-note">
        {hovered === undefined || hovered.thread >= answer.threads.length
          ? 'Drag over a time to zoom, click for the stack; pale is what was counted of a few seconds, not known when'
          : describe(answer, hovered)}
      </output>
      {place !== undefined && (
        <StackOfThread
          {...{ state, change }}
          thread={answer.threads[place.thread]!}
          timeMs={chosen!.timeMs}
          isRunning={mainState(answer, place) === 'running'}
        />
      )}
    </>
  );
}

/** Undefined: the thread or the time is no longer shown. */
function placeOf(
  { threads, fromMs, toMs, steps }: LanesAnswer,
  { tid, pid, host, timeMs }: { tid: number; pid: number; host: string; timeMs: number },
): LanePlace | undefined {
  const thread = threads.findIndex((each) => each.tid === tid && each.pid === pid && each.host === host);
  const step = Math.floor(((timeMs - fromMs) / (toMs - fromMs)) * steps);
  return thread < 0 || step < 0 || step >= steps ? undefined : { thread, step };
}

function mainState(answer: LanesAnswer, { thread, step }: LanePlace): string | undefined {
  const [first] = sharesAt(answer.threads[thread]!, step).sort((a, b) => b.share - a.share);
  return first && answer.states[first.state];
}

function describe(answer: LanesAnswer, { thread, step }: LanePlace): string {
  const { process, thread: name, tid } = answer.threads[thread]!;
  const parts = sharesAt(answer.threads[thread]!, step).map(
    ({ state, share, spread }) =>
      `${stateLabel(answer.states[state]!)} ${formatShare(share)}${spread > share / 2 ? ' (counted)' : ''}`,
  );
  const { fromMs, toMs } = stepSpan(answer, step);
  return `${process} · ${name} ${tid}, ${formatMoment(fromMs)} to ${formatMoment(toMs)}: ${parts.join(', ') || 'nothing known'}`;
}

/** Each state with its colour and the time of all threads in it. */
function Key({ answer: { states, threads } }: { answer: LanesAnswer }) {
  const { dark } = useTheme();
  const totals = states.map((_, state) => threads.reduce((sum, each) => sum + each.totals[state]!, 0));
  return (
    <ul class="areas lane-key" aria-label="States">
      {states.map((state, i) =>
        totals[i] === 0 ? null : (
          <li key={state}>
            <span class="swatch" style={{ background: stateColour(state, dark) }} aria-hidden="true" />{' '}
            {stateLabel(state)} <span class="soft">{timeText(totals[i]!)}</span>
          </li>
        ),
      )}
    </ul>
  );
}
