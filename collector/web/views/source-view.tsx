import { useEffect, useMemo } from 'preact/hooks';
import { formatCount, formatShare, plural } from '../../../common/flame/format.ts';
import { formatterOf, levelNote } from '../../../common/flame/shown-type.ts';
import type { SourceAnswer, TopAnswer } from '../../api/types.ts';
import { showSource } from '../state/function-actions.ts';
import { ask } from '../state/questions.ts';
import { parseSearch } from '../state/search.ts';
import { useAnswer } from '../state/use-answer.ts';
import type { ViewProperties } from '../state/view-properties.ts';
import { FunctionTable } from '../tables/function-table.tsx';
import { SourceTable } from '../tables/source-table.tsx';
import { Waiting } from './waiting.tsx';

/** A source file with the samples of each line. */
export function SourceView(properties: ViewProperties) {
  const { state, isLive, change, onMenu, onSearchNote } = properties;
  const { file, function: name } = state;
  const path = file === '' ? undefined : ask('source', state, { file, function: name });
  const { value, error } = useAnswer<SourceAnswer>(path, isLive);
  const answer = value?.file === file ? value : undefined;
  const matcher = useMemo(() => parseSearch(state.search), [state.search]);
  const isBad = matcher !== undefined && 'error' in matcher;
  const search = typeof matcher === 'function' ? matcher : undefined;
  const matches = useMemo(
    () => (search === undefined ? 0 : (answer?.text?.lines.filter(search).length ?? 0)),
    [answer?.text, search],
  );
  const note = matcher === undefined ? '' : isBad ? matcher.error : plural(matches, 'line');
  useEffect(() => onSearchNote({ text: note, isBad }), [note, isBad]);
  if (file === '') return <Picker {...properties} />;
  if (answer === undefined) return <Waiting error={error} />;
  return (
    <>
      <div class="heading">
        <h2 class="function-name" title={answer.text?.path ?? file}>
          {answer.text?.path ?? file}
        </h2>
        <p class="summary">{describe(answer)}</p>
        <button type="button" class="button" onClick={() => change({ file: '' })}>
          Choose another…
        </button>
      </div>
      <Notes answer={answer} />
      {(answer.text !== undefined || answer.counts.length > 0) && (
        <SourceTable
          key={`${file} ${name}`}
          {...{ answer, search }}
          onOpen={(of) => change({ view: 'callers', function: of })}
          onMenu={(of, at) => onMenu({ target: { name: of, file, mapping: '' }, at })}
        />
      )}
    </>
  );
}

const describe = ({ type, fileSamples, samples, text }: SourceAnswer): string => {
  const share = formatShare(fileSamples / (samples || 1));
  const cut =
    text !== undefined && text.lines.length < text.lineCount
      ? `, lines ${formatCount(text.firstLine)} to ${formatCount(text.firstLine + text.lines.length - 1)} of ${formatCount(text.lineCount)}`
      : '';
  const { amount, cell } = formatterOf(type);
  return `on the stack in ${amount(fileSamples)} of ${cell(samples)} (${share})${levelNote(type)}${cut}`;
};

/** What a reader has to know before believing the lines. */
function Notes({ answer }: { answer: SourceAnswer }) {
  const { problem, text, firstMs, counts, fileSamples } = answer;
  const hasChanged = text !== undefined && text.modifiedMs > firstMs;
  return (
    <>
      {problem !== '' && <p class="hint">No text: {problem}.</p>}
      {fileSamples > 0 && counts.length === 0 && <p class="hint">The samples of this file say no line.</p>}
      {hasChanged && (
        <p class="warning" role="status">
          The file was changed at {new Date(text.modifiedMs).toLocaleString()}, after the first of these
          samples: lines may have moved.
        </p>
      )}
    </>
  );
}

const LIMIT = 2000;

/** Functions whose file is known, to choose from. */
function Picker({ state, isLive, change, onMenu }: ViewProperties) {
  const path = ask('top', state, { limit: LIMIT, transform: state.transform });
  const { value: answer, error } = useAnswer<TopAnswer>(path, isLive);
  const rows = useMemo(() => (answer?.functions ?? []).filter(({ file }) => file !== ''), [answer]);
  if (answer === undefined) return <Waiting error={error} />;
  const what = formatterOf(answer.type).column;
  if (rows.length === 0)
    return (
      <p class="hint">
        No function of this time has a source file: native code needs debug information, of the program or by
        Import.
      </p>
    );
  return (
    <>
      <p class="hint">
        Choose a function: Enter or a double click shows its file, with the samples of each line.
      </p>
      <FunctionTable
        label="Functions with a source file"
        {...{ rows }}
        sort="Self"
        columns={[
          {
            name: 'Self',
            title: `share of the ${what} in the function itself`,
            format: ({ self }) => formatShare(self / answer.samples),
          },
          {
            name: 'Total',
            title: `share of the ${what} in it or what it called`,
            format: ({ total }) => formatShare(total / answer.samples),
          },
        ]}
        onSort={() => {}}
        onOpen={(row) => change(showSource(row))}
        onSource={(row) => change(showSource(row))}
        onMenu={(target, at) => onMenu({ target, at })}
      />
    </>
  );
}
