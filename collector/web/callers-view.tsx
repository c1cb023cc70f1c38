import { useEffect, useMemo, useState } from 'preact/hooks';
import type { CallersAnswer, TreeColumns } from '../api/types.ts';
import { FlameGraph } from './flame-graph.tsx';
import { buildModel, deepestRow, type FlameModel, nodeAtPath, pathKeyOf } from './flame-model.ts';
import { ROW_HEIGHT } from './flame-painter.ts';
import { formatShare } from './format.ts';
import { showSource } from './function-actions.ts';
import { ask } from './questions.ts';
import { parseSearch, search } from './search.ts';
import { formatterOf, levelNote } from './shown-type.ts';
import { TopView } from './top-view.tsx';
import { useAnswer } from './use-answer.ts';
import type { ViewProperties } from './view-properties.ts';

const HEADING_HEIGHT = 22;

/** A function in the middle: who calls it above, what it calls below. */
export function CallersView(properties: ViewProperties) {
  const { state, isLive, change } = properties;
  const { function: name, transform } = state;
  const path = name === '' ? undefined : ask('callers', state, { function: name, limit: 8000, transform });
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
      {answer !== undefined && answer.function === name && <Halves {...properties} answer={answer} />}
    </>
  );
}

function describe({ type, functionSamples, samples }: CallersAnswer): string {
  const { amount, cell } = formatterOf(type);
  const share = formatShare(functionSamples / (samples || 1));
  return `on the stack in ${amount(functionSamples)} of ${cell(samples)} (${share})${levelNote(type)}`;
}

function Halves({ answer, ...properties }: ViewProperties & { answer: CallersAnswer }) {
  const callers = useMemo(() => modelOf(answer, answer.callers), [answer]);
  const callees = useMemo(() => modelOf(answer, answer.callees), [answer]);
  if (answer.functionSamples === 0) return <p class="hint">No stack of this time has this function.</p>;
  return (
    <div class="halves">
      <Half {...properties} model={callers} title="Callers" isFlipped />
      <Half {...properties} model={callees} title="Callees" isFlipped={false} />
    </div>
  );
}

function modelOf(answer: CallersAnswer, columns: TreeColumns): FlameModel {
  const { fromMs, toMs, type, samples, allSamples, cpuNanos, cpus } = answer;
  const tree = withoutRoot(columns);
  return buildModel({ fromMs, toMs, type, samples, allSamples, cpuNanos, cpus, timeline: [], ...tree });
}

/** The root says nothing here, where there is one function below it; several may have the name. */
function withoutRoot({ nodes, ...rest }: TreeColumns): TreeColumns {
  const { parent, frame, self } = nodes;
  if (parent.length < 2 || parent.lastIndexOf(0) !== 1) return { nodes, ...rest };
  return {
    ...rest,
    nodes: {
      parent: parent.slice(1).map((above) => Math.max(0, above - 1)),
      frame: frame.slice(1),
      self: self.slice(1),
    },
  };
}

type HalfProperties = ViewProperties & { model: FlameModel; title: string; isFlipped: boolean };

function Half({ model, title, isFlipped, state, jumps, announce, change, onMenu }: HalfProperties) {
  const [zoom, setZoom] = useState('');
  useEffect(() => setZoom(''), [state.function]);
  const root = nodeAtPath(model, zoom) ?? 0;
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
        onZoom={(node) => setZoom(node === 0 ? '' : pathKeyOf(model, node))}
        onOpen={(name) => change({ function: name })}
        onSource={(target) => change(showSource(target))}
      />
    </section>
  );
}
