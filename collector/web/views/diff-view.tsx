import { useEffect, useMemo, useState } from 'preact/hooks';
import { findZoom, zoomKeyOf } from '../../../common/flame/flame-model.ts';
import { formatPoints, formatShare, plural } from '../../../common/flame/format.ts';
import { formatterOf, isCpu, levelNote } from '../../../common/flame/shown-type.ts';
import { mayBeChance } from '../../../common/profile/model/chance.ts';
import type { Basis, DiffAnswer, DiffTreeAnswer } from '../../api/types.ts';
import { ColourChoice } from '../flame/colour-choice.tsx';
import { buildDiffModel } from '../flame/diff-model.ts';
import { FlameGraph } from '../flame/flame-graph.tsx';
import { Legend } from '../flame/legend.tsx';
import { showSource } from '../state/function-actions.ts';
import { parseSearch, search } from '../state/search.ts';
import { useAnswer } from '../state/use-answer.ts';
import type { ViewProperties } from '../state/view-properties.ts';
import { type FigureColumn, FunctionTable } from '../tables/function-table.tsx';
import { DiffBase } from './diff-base.tsx';
import { askDiff, baseOf, shownSpan } from './diff-range.ts';
import { Waiting } from './waiting.tsx';

const LIMIT = 1000;

/** What changed between two stretches of time, or between two filters: as a picture and as a table. */
export function DiffView(properties: ViewProperties) {
  const { isLive } = properties;
  const { value: tree, isStale, error } = useAnswer<DiffTreeAnswer>(askDiff('difftree', properties), isLive);
  const table = useAnswer<DiffAnswer>(askDiff('diff', properties, LIMIT), isLive).value;
  return (
    <>
      <DiffBase {...properties} base={baseOf(properties)} now={shownSpan(properties)} />
      {tree === undefined || table === undefined ? (
        <Waiting error={error} />
      ) : (
        <Compared {...properties} {...{ tree, table, isStale }} />
      )}
    </>
  );
}

type ComparedProperties = ViewProperties & { tree: DiffTreeAnswer; table: DiffAnswer; isStale: boolean };

function Compared({ tree, table, isStale, ...properties }: ComparedProperties) {
  const { state, change, jumps, announce, onMenu, onSearchNote } = properties;
  const [isTable, setTable] = useState(false);
  const model = useMemo(() => buildDiffModel(tree), [tree]);
  const colour = state.colour ?? 'difference';
  const root = findZoom(model, state.zoom) ?? 0;
  const isCounted = !isStale && zoomKeyOf(model, root) === state.zoom;
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
  const { of, column } = formatterOf(now.type);
  if (now.samples === 0 || base.samples === 0) {
    return <NothingToCompare what={now.samples === 0 ? 'The shown time' : 'The baseline'} />;
  }
  return (
    <>
      <div class="heading">
        <p class="summary">
          {of(now.samples)} compared with {of(base.samples)}
          {levelNote(now.type)}
        </p>
        <Legend
          {...{ model, root, colour }}
          leaves={isCounted ? tree.leaves : undefined}
          baseLeaves={isCounted ? tree.baseLeaves : undefined}
        />
        {colour === 'difference' && <span class="soft">Width: average of both</span>}
        <ColourChoice
          {...{ colour }}
          options={['difference', 'kind', 'library']}
          onColour={(name) => change({ colour: name === 'difference' ? undefined : name })}
        />
        <button type="button" class="button" aria-pressed={isTable} onClick={() => setTable(!isTable)}>
          Table
        </button>
      </div>
      {isTable ? (
        <FunctionTable
          label="Functions by change"
          rows={rows}
          columns={columnsFor(column, now, base)}
          sort="Change"
          onSort={() => {}}
          onOpen={({ name }) => change({ view: 'callers', function: name })}
          onSource={(row) => change(showSource(row))}
          onMenu={(target, at) => onMenu({ target, at })}
        />
      ) : (
        <FlameGraph
          {...{ model, root, found, colour, jumps, announce, onMenu }}
          label="Differences"
          isFlipped={false}
          onZoom={(node) => change({ zoom: zoomKeyOf(model, node) })}
          onOpen={(name) => change({ view: 'callers', function: name })}
          onSource={(target) => change(showSource(target))}
        />
      )}
    </>
  );
}

/** What to do where one side is empty. */
function NothingToCompare({ what }: { what: string }) {
  return (
    <div class="hint" role="status">
      <p>{what} has no samples. Choose two times or two filters:</p>
      <ul class="steps">
        <li>
          Two times: drag over one on the timeline, then hold Shift and drag over the one to compare it with.
          By keyboard: select a time with the arrow keys, press <b>Use selection as baseline</b>, and move the
          selection on.
        </li>
        <li>
          Two filters of the same time: one in the field above the timeline, such as <code>process=node</code>
          , the other as <b>Compare with filter</b>, such as <code>process=python3</code>.
        </li>
      </ul>
    </div>
  );
}

type Row = DiffAnswer['functions'][number];

/** Of samples alone: of other types a value does not say how many there were. */
const isChance = ({ self, baseSelf }: Row, now: Basis, base: Basis): boolean =>
  isCpu(now.type) && mayBeChance({ part: baseSelf, all: base.samples }, { part: self, all: now.samples });

const columnsFor = (what: string, now: Basis, base: Basis): FigureColumn<Row>[] => [
  {
    name: 'Change',
    title:
      'change of the share that the function itself has; ~ grey: so few samples differ by as much without any change, in one of twenty cases',
    format: (row) => `${isChance(row, now, base) ? '~' : ''}${formatPoints(row.selfShareChange)}`,
    tone: (row) => {
      if (isChance(row, now, base)) return 'tone-chance';
      return row.selfShareChange > 0 ? 'tone-grew' : 'tone-shrank';
    },
  },
  {
    name: 'Self',
    title: `share of the ${what} in the function itself, now`,
    format: ({ self }) => formatShare(self / now.samples),
  },
  {
    name: 'Before',
    title: `share of the ${what} in the function itself, in what it is compared with`,
    format: ({ baseSelf }) => formatShare(baseSelf / base.samples),
  },
  {
    name: 'Total',
    title: 'change of the share of the function and what it called',
    format: ({ total, baseTotal }) => formatPoints(total / now.samples - baseTotal / base.samples),
  },
];
