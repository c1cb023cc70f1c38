import { useEffect, useMemo } from 'preact/hooks';
import { formatCount, formatShare, plural } from '../../../common/flame/format.ts';
import { formatterOf, levelNote } from '../../../common/flame/shown-type.ts';
import type { TopAnswer } from '../../api/types.ts';
import { showSource } from '../state/function-actions.ts';
import { ask } from '../state/questions.ts';
import { parseSearch } from '../state/search.ts';
import { useAnswer } from '../state/use-answer.ts';
import type { ViewProperties } from '../state/view-properties.ts';
import { type FigureColumn, FunctionTable } from '../tables/function-table.tsx';
import { Waiting } from './waiting.tsx';

const LIMIT = 2000;

type Row = TopAnswer['functions'][number];

/** Functions by the events in themselves, or in what they called. */
export function TopView({ state, isLive, change, onMenu, onSearchNote }: ViewProperties) {
  const sort = state.sort === 'Total' ? 'Total' : 'Self';
  const path = ask('top', state, { limit: LIMIT, sort: sort.toLowerCase(), transform: state.transform });
  const { value: answer, error } = useAnswer<TopAnswer>(path, isLive);
  const matcher = useMemo(() => parseSearch(state.search), [state.search]);
  const isBad = matcher !== undefined && 'error' in matcher;
  const rows = useMemo(() => {
    const all = answer?.functions ?? [];
    return typeof matcher === 'function' ? all.filter(({ name }) => matcher(name)) : all;
  }, [answer, matcher]);
  const note = matcher === undefined ? '' : isBad ? matcher.error : `${formatCount(rows.length)} functions`;
  useEffect(() => onSearchNote({ text: note, isBad }), [note, isBad]);
  if (answer === undefined) return <Waiting error={error} />;
  const { of, column } = formatterOf(answer.type);
  return (
    <>
      <p class="summary">
        {of(answer.samples)}
        {levelNote(answer.type)} ·{' '}
        {answer.functionCount > LIMIT
          ? `Top ${formatCount(LIMIT)} of ${formatCount(answer.functionCount)} functions`
          : plural(answer.functionCount, 'function')}
      </p>
      <FunctionTable
        label="Functions"
        {...{ rows, sort }}
        columns={columnsFor(column, answer.samples)}
        onSort={(name) => change({ sort: name })}
        onOpen={({ name }) => change({ view: 'callers', function: name })}
        onSource={(row) => change(showSource(row))}
        onMenu={(target, at) => onMenu({ target, at })}
      />
    </>
  );
}

const columnsFor = (what: string, samples: number): FigureColumn<Row>[] => [
  {
    name: 'Self',
    title: `share of the ${what} in the function itself`,
    format: ({ self }) => formatShare(self / samples),
  },
  {
    name: 'Total',
    title: `share of the ${what} in the function or in what it called`,
    format: ({ total }) => formatShare(total / samples),
  },
];
