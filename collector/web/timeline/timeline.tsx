import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { formatDuration, formatShare, formatSpan, valueName } from '../../../common/flame/format.ts';
import { formatterOf, isCpu, levelNote } from '../../../common/flame/shown-type.ts';
import { isAttributeLabel, titleOfAttribute } from '../../../common/profile/filters/filter.ts';
import { THREAD_STATE } from '../../../common/profile/model/thread-types.ts';
import type { TimelineAnswer } from '../../api/types.ts';
import type { TimeRange } from '../../store/store.ts';
import { type FoundLabel, GROUPINGS, type Grouping } from '../state/url-state.ts';
import { useSize, useTheme } from '../state/use-browser.ts';
import { areaColour } from './palette.ts';
import { stateColour } from './state-colours.ts';
import { type Area, assignColours, stackTimeline, type TimelineData } from './timeline-data.ts';
import { moveBrush, snapBrush } from './timeline-keys.ts';
import { type PlotEvents, type PlotScene, TimelinePlot } from './timeline-plot.ts';

interface Properties {
  answer: TimelineAnswer;
  brush: TimeRange | undefined;
  base: TimeRange | undefined;
  by: Grouping;
  /** Attributes that samples of the time have, which it can be stacked by, too. */
  found: readonly FoundLabel[];
  /** The shown time ends now. */
  isLive: boolean;
  onBy(by: Grouping): void;
  /** Undefined: the whole timeline. `isBase`: Shift was held. */
  onBrush(brush: TimeRange | undefined, isBase: boolean): void;
  onPick(value: string): void;
}

/** A gap that is seen at the end of the last minute. */
const MIN_DELAY_MS = 3000;

/** How many CPUs were busy with what, or how much there was of another type; what is brushed is the time that everything else shows. */
export function Timeline({ answer, brush, base, by, found, isLive, onBy, onBrush, onPick }: Properties) {
  const { dark } = useTheme();
  const [step, setStep] = useState<number>();
  const data = useMemo(() => stackTimeline(answer), [answer]);
  const places = usePlaces(by, data.areas);
  const placeOf = ({ value }: Area) => (value === undefined ? undefined : places.get(value));
  const colours = data.areas.map(
    (area) => (by === THREAD_STATE && stateColour(area.value ?? '', dark)) || areaColour(placeOf(area), dark),
  );
  const frame = usePlot(
    { data, brush, base, colours, isDark: dark },
    {
      onBrush: (a, b, isShift) => onBrush(snapBrush(data, data.stepMs, a, b), isShift),
      onClear: () => brush !== undefined && onBrush(undefined, false),
      onHover: setStep,
    },
  );
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const moved = moveBrush(data, data.stepMs, brush, event.key, event.shiftKey);
    if (event.key === 'Escape' && brush !== undefined) onBrush(undefined, false);
    else if (moved !== undefined) onBrush(moved, false);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const shown = brush === undefined ? '' : `, shown: ${formatSpan(brush)}`;
  return (
    <section class="timeline" aria-label="Timeline">
      <div
        ref={frame}
        class="timeline-plot"
        role="application"
        aria-roledescription="timeline"
        aria-label={`${summarize(data)}${shown}. Arrow keys choose a part, Shift with arrows its end, Escape all.`}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: an application takes the keyboard as a whole
        tabIndex={0}
        onKeyDown={onKeyDown}
      />
      <div class="timeline-foot">
        <GroupingChoice {...{ by, found, onBy }} />
        <ul class="areas" aria-label="Areas">
          {data.areas.map((area, i) => (
            <AreaEntry
              key={area.value ?? ' others'}
              {...{ area, by, step, onPick }}
              scale={data.scale}
              colour={colours[i]!}
            />
          ))}
        </ul>
        <p class="timeline-note">
          {step === undefined
            ? `${summarize(data)}${delay(data, isLive)}`
            : formatSpan({
                fromMs: data.fromMs + step * data.stepMs,
                toMs: data.fromMs + (step + 1) * data.stepMs,
              })}
        </p>
      </div>
    </section>
  );
}

/** What the whole timeline comes to, in words. */
const summarize = ({ type, samples, scale, mean }: TimelineData): string =>
  type.kind === 'level'
    ? `${formatterOf(type).of(samples)}${levelNote(type)}`
    : `${scale.of(mean)} on average`;

/** Why the end of a live timeline is empty. */
function delay({ type, areas, stepMs }: TimelineData, isLive: boolean): string {
  if (!isCpu(type)) return '';
  const steps = areas[0]?.heights.length ?? 0;
  let empty = 0;
  while (empty < steps && areas.every(({ heights }) => heights[steps - 1 - empty] === 0)) empty++;
  const ms = empty * stepMs;
  return isLive && empty < steps && ms >= MIN_DELAY_MS
    ? `; the newest samples are ${formatDuration(ms / 1000)} old: agents send every few seconds`
    : '';
}

/** A colour stays with its group as long as it is shown. */
function usePlaces(by: Grouping, areas: readonly Area[]): Map<string, number> {
  const kept = useRef({ by, places: new Map<string, number>() });
  if (kept.current.by !== by) kept.current = { by, places: new Map() };
  const shown = areas.flatMap(({ value }) => (value === undefined ? [] : [value]));
  kept.current.places = assignColours(kept.current.places, shown);
  return kept.current.places;
}

function usePlot(scene: PlotScene, events: PlotEvents) {
  const frame = useRef<HTMLDivElement>(null);
  const plot = useRef<TimelinePlot>(undefined);
  const latest = useRef(events);
  latest.current = events;
  const { width, height } = useSize(frame);
  useLayoutEffect(() => {
    if (width === 0) return;
    if (plot.current === undefined) {
      plot.current = new TimelinePlot(frame.current!, { width, height }, scene, {
        onBrush: (...span) => latest.current.onBrush(...span),
        onClear: () => latest.current.onClear(),
        onHover: (step) => latest.current.onHover(step),
      });
    } else plot.current.resize({ width, height });
  }, [width, height]);
  const { data, brush, base, isDark } = scene;
  useLayoutEffect(() => plot.current?.update(scene), [data, brush, base, isDark]);
  useEffect(() => () => plot.current?.destroy(), []);
  return frame;
}

function titleOf(by: Grouping): string {
  if (by === THREAD_STATE) return 'state';
  return isAttributeLabel(by) ? titleOfAttribute(by) : by;
}

function GroupingChoice({ by, found, onBy }: Pick<Properties, 'by' | 'found' | 'onBy'>) {
  const others = found.filter((label) => !GROUPINGS.some((name) => name === label.slice(1)));
  const all = new Set<Grouping>([...GROUPINGS, ...others, by]);
  return (
    <label class="grouping">
      by{' '}
      <select
        aria-label="Stack by"
        value={by}
        onChange={(event) => onBy(event.currentTarget.value as Grouping)}
      >
        {[...all].map((name) => (
          <option key={name} value={name}>
            {titleOf(name)}
          </option>
        ))}
      </select>
    </label>
  );
}

interface AreaProperties {
  area: Area;
  by: Grouping;
  colour: string;
  scale: TimelineData['scale'];
  /** The step under the pointer. */
  step: number | undefined;
  onPick(value: string): void;
}

function AreaEntry({ area, by, colour, scale, step, onPick }: AreaProperties) {
  const { value, share, heights } = area;
  const figure = step === undefined ? formatShare(share) : scale.label(heights[step] ?? 0);
  const swatch = <span class="swatch" style={{ background: colour }} aria-hidden="true" />;
  if (value === undefined) {
    return (
      <li>
        {swatch} all other <span class="soft">{figure}</span>
      </li>
    );
  }
  const shown = valueName(by, value);
  const name = shown === '(none)' ? `(no ${by})` : shown;
  return (
    <li>
      <button type="button" class="plain" title={`show only ${by} ${name}`} onClick={() => onPick(value)}>
        {swatch} {name} <span class="soft">{figure}</span>
      </button>
    </li>
  );
}
