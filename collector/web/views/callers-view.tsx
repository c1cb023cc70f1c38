import { useMemo, useState } from 'preact/hooks';
import { deepestRow, type FlameModel, findZoom, zoomKeyOf } from '../../../common/flame/flame-model.ts';
import { formatShare } from '../../../common/flame/format.ts';
import { formatterOf, levelNote } from '../../../common/flame/shown-type.ts';
import type { CallersAnswer } from '../../api/types.ts';
import { FlameGraph } from '../flame/flame-graph.tsx';
import { ROW_HEIGHT } from '../flame/flame-painter.ts';
import { showSource } from '../state/function-actions.ts';
import { ask, MAX_BOXES } from '../state/questions.ts';
import { parseSearch, search } from '../state/search.ts';
import { useAnswer } from '../state/use-answer.ts';
import type { ViewProperties } from '../state/view-properties.ts';
import { modelOf } from './callers-model.ts';
import { TopView } from './top-view.tsx';

const HEADING_HEIGHT = 22;

/** A function in the middle: who calls it above, what it calls below. */
export function CallersView(properties: ViewProperties) {
  const { state, isLive, change } = properties;
  const { function: name, transform } = state;
  const [zooms, setZooms] = useState<Zooms>(NO_ZOOMS);
  const { callers, callees } = zooms.function === name ? zooms : NO_ZOOMS;
  const what = { function: name, limit: MAX_BOXES, transform, callers_zoom: callers, callees_zoom: callees };
  const path = name === '' ? undefined : ask('callers', state, what);
  const { value: answer, error, isStale } = useAnswer<CallersAnswer>(path, isLive);
  if (name === '') {
    return (
      <>
        <p class="hint">Choose a function: Enter or a double click shows who calls it and what it calls.</p>
        <TopView {...properties} />
      </>
    );
  }
  return (
    <>
      <div class="heading">
        <h2 class="function-name" title={name}>
          {name}
        </h2>
        <p class="summary">
          {answer !== undefined && !isStale && describe(answer)}
          {error !== undefined && error}
        </p>
        <button type="button" class="button" onClick={() => change({ function: '' })}>
          Choose another…
        </button>
      </div>
      {answer !== undefined && answer.function === name && (
        <CallersAndCallees
          {...properties}
          {...{ answer, callers, callees }}
          onZooms={(zoomed) => setZooms({ callers, callees, ...zoomed, function: name })}
        />
      )}
    </>
  );
}

function describe({ type, functionSamples, samples }: CallersAnswer): string {
  const { amount, cell } = formatterOf(type);
  const share = formatShare(functionSamples / (samples || 1));
  return `on the stack in ${amount(functionSamples)} of ${cell(samples)} (${share})${levelNote(type)}`;
}

/** Keys of the boxes that are looked at; '' for all. */
interface Zooms {
  function: string;
  callers: string;
  callees: string;
}

const NO_ZOOMS: Zooms = { function: '', callers: '', callees: '' };

interface CallersAndCalleesProperties extends ViewProperties, Omit<Zooms, 'function'> {
  answer: CallersAnswer;
  onZooms(zooms: Partial<Zooms>): void;
}

function CallersAndCallees({
  answer,
  callers,
  callees,
  onZooms,
  ...properties
}: CallersAndCalleesProperties) {
  const above = useMemo(() => modelOf(answer, answer.callers), [answer]);
  const below = useMemo(() => modelOf(answer, answer.callees), [answer]);
  if (answer.functionSamples === 0) return <p class="hint">No stack of this time has this function.</p>;
  return (
    <div class="callers-and-callees">
      <Half
        {...properties}
        {...{ model: above, zoom: callers, title: 'Callers', isFlipped: true }}
        onZoom={(key) => onZooms({ callers: key })}
      />
      <Half
        {...properties}
        {...{ model: below, zoom: callees, title: 'Callees', isFlipped: false }}
        onZoom={(key) => onZooms({ callees: key })}
      />
    </div>
  );
}

interface HalfProperties extends ViewProperties {
  model: FlameModel;
  title: string;
  isFlipped: boolean;
  zoom: string;
  onZoom(key: string): void;
}

function Half(properties: HalfProperties) {
  const { model, title, isFlipped, zoom, onZoom, state, jumps, announce, change, onMenu } = properties;
  const root = findZoom(model, zoom) ?? 0;
  const found = useMemo(() => {
    const matcher = parseSearch(state.search);
    return typeof matcher === 'function' ? search(model, matcher, root) : undefined;
  }, [model, state.search, root]);
  // Callers are few as a rule: they leave what they don't need to the callees.
  const height = HEADING_HEIGHT + (deepestRow(model, root) + 1) * ROW_HEIGHT;
  return (
    <section class="half" aria-label={title} style={isFlipped ? { flex: `0 1 ${height}px` } : {}}>
      <h3>{title}</h3>
      <FlameGraph
        {...{ model, root, found, jumps, announce, isFlipped, onMenu }}
        colour={state.colour === 'library' ? 'library' : 'kind'}
        label={title}
        onZoom={(node) => onZoom(zoomKeyOf(model, node))}
        onOpen={(name) => change({ function: name })}
        onSource={(target) => change(showSource(target))}
      />
    </section>
  );
}
