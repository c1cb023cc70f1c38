import { useEffect, useMemo, useState } from 'preact/hooks';
import type { DiffAnswer, DiffTreeAnswer } from '../api/types.ts';
import type { TimeRange } from '../store/store.ts';
import { DiffBase } from './diff-base.tsx';
import { buildDiffModel } from './diff-model.ts';
import { FlameGraph } from './flame-graph.tsx';
import { formatPoints, formatShare, plural } from './format.ts';
import { showSource } from './function-actions.ts';
import { type FigureColumn, FunctionTable } from './function-table.tsx';
import { askSpan } from './questions.ts';
import { parseSearch, search } from './search.ts';
import { useAnswer } from './use-answer.ts';
import type { ViewProperties } from './view-properties.ts';
import { Waiting } from './waiting.tsx';

const LIMIT = 1000;

/** What changed between two stretches of time, or between two filters: as a picture and as a table. */
export function DiffView(properties: ViewProperties) {
  const { state, timeline, isLive } = properties;
  const now = state.brush ?? timeline;
  const base = baseOf(properties, now);
  const filters = {
    where: state.where,
    base_from: Math.round(base.fromMs),
    base_to: Math.round(base.toMs),
    base_where: state.baseWhere ?? state.where,
    transform: state.transform,
  };
  const tree = useAnswer<DiffTreeAnswer>(askSpan('difftree', now, filters), isLive).value;
  const table = useAnswer<DiffAnswer>(askSpan('diff', now, { ...filters, limit: LIMIT }), isLive).value;
  return (
    <>
      <DiffBase {...properties} base={base} now={now} />
      {tree === undefined || table === undefined ? (
        <Waiting />
      ) : (
        <Compared {...properties} tree={tree} table={table} />
      )}
    </>
  );
}

/** What was chosen, or else the same length of time right before. */
function baseOf({ state, timeline }: ViewProperties, now: TimeRange): TimeRange {
  if (state.base !== undefined) return state.base;
  if (state.baseWhere !== undefined) return now;
  const length = now.toMs - now.fromMs;
  // Within the timeline there may be no time before: half of it is compared with the other.
  return state.brush === undefined || now.fromMs - length >= timeline.fromMs
    ? { fromMs: now.fromMs - length, toMs: now.fromMs }
    : { fromMs: timeline.fromMs, toMs: Math.max(now.fromMs, timeline.fromMs + 1) };
}

type ComparedProperties = ViewProperties & { tree: DiffTreeAnswer; table: DiffAnswer };

function Compared({ tree, table, ...properties }: ComparedProperties) {
  const { state, change, jumps, announce, onMenu, onSearchNote } = properties;
  const [isTable, setTable] = useState(false);
  const model = useMemo(() => buildDiffModel(tree), [tree]);
  const root = model.nodeByPath.get(state.zoom) ?? 0;
  const matcher = useMemo(() => parseSearch(state.search), [state.search]);
  const isBad = matcher !== undefined && 'error' in matcher;
  const found = useMemo(
    () => (typeof matcher === 'function' ? search(model, matcher, root) : undefined),
    [model, matcher, root],
  );
  const note = isBad ? matcher.error : found === undefined ? '' : plural(found.nodes, 'box', 'boxes');
  useEffect(() => onSearchNote({ text: note, isBad }), [note, isBad]);
  const rows = useMemo(
    () => table.functions.filter(({ name }) => typeof matcher !== 'function' || matcher(name)),
    [table, matcher],
  );
  const { now, base } = table;
  if (now.samples === 0 || base.samples === 0) {
    return (
      <p class="hint">{now.samples === 0 ? 'The shown time' : 'What it is compared with'} has no samples.</p>
    );
  }
  return (
    <>
      <div class="heading">
        <p class="summary">
          {plural(now.samples, 'sample')} against {plural(base.samples, 'sample')}
        </p>
        <ul class="legend" aria-label="Colours">
          <li>
            <span class="swatch grew" /> grew
          </li>
          <li>
            <span class="swatch shrank" /> shrank
          </li>
          <li class="soft">width: mean of both shares</li>
        </ul>
        <button type="button" class="button" aria-pressed={isTable} onClick={() => setTable(!isTable)}>
          Table
        </button>
      </div>
      {isTable ? (
        <FunctionTable
          label="Functions by change"
          rows={rows}
          columns={columnsFor(now.samples, base.samples)}
          sort="Change"
          onSort={() => {}}
          onOpen={({ name }) => change({ view: 'callers', function: name })}
          onSource={(row) => change(showSource(row))}
          onMenu={(target, at) => onMenu({ target, at })}
        />
      ) : (
        <FlameGraph
          {...{ model, root, found, jumps, announce, onMenu }}
          label="Differences"
          isFlipped={false}
          onZoom={(node) => change({ zoom: node === 0 ? '' : model.pathKey[node]! })}
          onOpen={(name) => change({ view: 'callers', function: name })}
          onSource={(target) => change(showSource(target))}
        />
      )}
    </>
  );
}

type Row = DiffAnswer['functions'][number];

const columnsFor = (samples: number, baseSamples: number): FigureColumn<Row>[] => [
  {
    name: 'Change',
    title: 'change of the share that the function itself has',
    format: ({ selfShareChange }) => formatPoints(selfShareChange),
    tone: ({ selfShareChange }) => (selfShareChange > 0 ? 'tone-grew' : 'tone-shrank'),
  },
  {
    name: 'Self',
    title: 'share of the samples in the function itself, now',
    format: ({ self }) => formatShare(self / samples),
  },
  {
    name: 'Before',
    title: 'share of the samples in the function itself, in what it is compared with',
    format: ({ baseSelf }) => formatShare(baseSelf / baseSamples),
  },
  {
    name: 'Total',
    title: 'change of the share of the function and what it called',
    format: ({ total, baseTotal }) => formatPoints(total / samples - baseTotal / baseSamples),
  },
];
