import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { formatShare } from '../../../common/flame/format.ts';
import type { SourceAnswer } from '../../api/types.ts';
import type { Matcher } from '../state/search.ts';
import { useSize } from '../state/use-browser.ts';
import { useRows } from '../state/use-rows.ts';
import { RowGap } from './row-gap.tsx';
import { besideCurrent, stepOf } from './row-keys.ts';
import { listSourceRows, nextWithSamples, type SourceRow } from './source-rows.ts';

const ROW_HEIGHT = 22;

interface Properties {
  answer: SourceAnswer;
  search: Matcher | undefined;
  /** Enter and double click: who calls the function that the line's samples are in. */
  onOpen(name: string): void;
  onMenu(name: string, at: { x: number; y: number }): void;
}

/** The lines of a file; only the visible ones exist in the page. It starts at the line that was looked for. */
export function SourceTable({ answer, search, onOpen, onMenu }: Properties) {
  const scroller = useRef<HTMLDivElement>(null);
  const rows = useMemo(() => listSourceRows(answer), [answer]);
  const [line, setLine] = useState(answer.line);
  const current = Math.max(
    0,
    rows.findIndex((row) => row.line === line),
  );
  const { first, end, pageRows, onScroll } = useRows(scroller, rows.length, current, ROW_HEIGHT);
  useCentre(scroller, current);
  const hottest = useMemo(() => Math.max(1, ...answer.counts.map(({ total }) => total)), [answer]);
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const { key } = event;
    const next = targetOf(rows, current, pageRows, key);
    const name = rows[current]?.function ?? '';
    if (next !== undefined) setLine(rows[Math.min(rows.length - 1, Math.max(0, next))]!.line);
    else if (key === 'Enter' && name !== '') onOpen(name);
    else if ((key === 'm' || key === 'ContextMenu') && name !== '') onMenu(name, besideCurrent(event));
    else return;
    event.preventDefault();
  };
  return (
    <div ref={scroller} class="tree source" onScroll={onScroll}>
      <table
        // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: its rows are walked by arrow keys
        role="grid"
        aria-label={`Source of ${answer.file}`}
        aria-rowcount={rows.length + 1}
        aria-activedescendant={`row-${current}`}
        tabIndex={0}
        onKeyDown={onKeyDown}
      >
        <thead>
          <tr aria-rowindex={1}>
            <th scope="col" class="figure">
              Total
            </th>
            <th scope="col" class="figure">
              Self
            </th>
            <th scope="col" class="line">
              Line
            </th>
            <th scope="col">{answer.text === undefined ? 'Function' : 'Source'}</th>
          </tr>
        </thead>
        <tbody>
          <RowGap rows={first} rowHeight={ROW_HEIGHT} />
          {rows.slice(first, end).map((row, offset) => (
            <LineRow
              key={row.line}
              {...{ row, hottest, onOpen, onMenu }}
              index={first + offset}
              samples={answer.samples}
              isCurrent={first + offset === current}
              isMatch={search?.(row.text) === true}
              onCurrent={() => setLine(row.line)}
            />
          ))}
          <RowGap rows={rows.length - end} rowHeight={ROW_HEIGHT} />
        </tbody>
      </table>
    </div>
  );
}

/** Index of the row that a key leads to, which may lie outside; undefined for other keys. */
function targetOf(
  rows: readonly SourceRow[],
  current: number,
  pageRows: number,
  key: string,
): number | undefined {
  if (key === 'n' || key === 'N') return nextWithSamples(rows, current, key === 'n' ? 1 : -1);
  const step = stepOf(key, pageRows, rows.length);
  return step === undefined ? undefined : current + step;
}

/** Once the height is known, the first line that is looked at comes to the middle. */
function useCentre(scroller: { current: HTMLElement | null }, current: number): void {
  const { height } = useSize(scroller);
  const isDone = useRef(false);
  useLayoutEffect(() => {
    if (isDone.current || height === 0) return;
    isDone.current = true;
    scroller.current!.scrollTop = current * ROW_HEIGHT - height / 2;
  }, [height]);
}

interface RowProperties extends Pick<Properties, 'onOpen' | 'onMenu'> {
  row: SourceRow;
  index: number;
  samples: number;
  /** Samples of the line with the most. */
  hottest: number;
  isCurrent: boolean;
  isMatch: boolean;
  onCurrent(): void;
}

function LineRow(properties: RowProperties) {
  const { row, index, samples, hottest, isCurrent, isMatch, onCurrent, onOpen, onMenu } = properties;
  const share = (count: number): string => (count === 0 ? '' : formatShare(count / samples));
  return (
    <tr
      id={`row-${index}`}
      class={`${isCurrent ? 'current' : ''} ${isMatch ? 'match' : ''}`}
      aria-rowindex={index + 2}
      aria-selected={isCurrent}
      onClick={onCurrent}
      onDblClick={() => row.function !== '' && onOpen(row.function)}
      onContextMenu={(event) => {
        if (row.function === '') return;
        event.preventDefault();
        onCurrent();
        onMenu(row.function, { x: event.clientX, y: event.clientY });
      }}
    >
      <td class="figure bar" style={{ '--share': `${(100 * row.total) / hottest}%` }}>
        {share(row.total)}
      </td>
      <td class="figure">{share(row.self)}</td>
      <td class="line">{row.line}</td>
      <td class="code">{row.text}</td>
    </tr>
  );
}
