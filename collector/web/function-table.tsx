import { useRef, useState } from 'preact/hooks';
import type { FrameKind } from '../store/store.ts';
import type { FunctionRef } from './function-actions.ts';
import { KindSwatch } from './kind-swatch.tsx';
import { kindLabel, toKind } from './kinds.ts';
import { RowGap } from './row-gap.tsx';
import { useRows } from './use-rows.ts';

export interface FunctionRow extends FunctionRef {
  kind: FrameKind;
}

/** A column of figures; the collector sorts by them. */
export interface FigureColumn<Row> {
  name: string;
  title: string;
  format(row: Row): string;
  tone?(row: Row): string;
}

interface Properties<Row extends FunctionRow> {
  label: string;
  rows: readonly Row[];
  columns: readonly FigureColumn<Row>[];
  sort: string;
  onSort(name: string): void;
  /** Enter and double click: who calls it. */
  onOpen(row: Row): void;
  onMenu(row: Row, at: { x: number; y: number }): void;
}

/** Functions with figures; only the visible rows exist in the page. */
export function FunctionTable<Row extends FunctionRow>(properties: Properties<Row>) {
  const { label, rows, columns, sort, onSort, onOpen, onMenu } = properties;
  const scroller = useRef<HTMLDivElement>(null);
  const [current, setCurrent] = useState(0);
  const at = Math.min(current, Math.max(0, rows.length - 1));
  const { first, end, pageRows, onScroll } = useRows(scroller, rows.length, at);
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const row = rows[at];
    const steps: Record<string, number> = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: pageRows,
      PageUp: -pageRows,
      Home: -rows.length,
      End: rows.length,
    };
    const step = steps[event.key];
    if (step !== undefined) setCurrent(Math.min(rows.length - 1, Math.max(0, at + step)));
    else if (row !== undefined && event.key === 'Enter') onOpen(row);
    else if (row !== undefined && (event.key === 'm' || event.key === 'ContextMenu')) {
      const box = scroller.current!.querySelector('tr.current')?.getBoundingClientRect();
      onMenu(row, { x: (box?.left ?? 0) + 300, y: box?.bottom ?? 0 });
    } else return;
    event.preventDefault();
  };
  return (
    <div ref={scroller} class="tree functions" onScroll={onScroll}>
      <table
        // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: a grid is a table whose rows are chosen
        role="grid"
        aria-label={label}
        aria-rowcount={rows.length + 1}
        aria-activedescendant={rows.length === 0 ? undefined : `function-${at}`}
        tabIndex={0}
        onKeyDown={onKeyDown}
      >
        <thead>
          <tr aria-rowindex={1}>
            {columns.map(({ name, title }) => (
              <th key={name} scope="col" class="figure" aria-sort={name === sort ? 'descending' : 'none'}>
                <button type="button" class="plain" title={title} onClick={() => onSort(name)}>
                  {name}
                  {name === sort ? ' ▾' : ''}
                </button>
              </th>
            ))}
            <th scope="col">Function</th>
            <th scope="col" class="kind">
              Kind
            </th>
            <th scope="col" class="file">
              File
            </th>
          </tr>
        </thead>
        <tbody>
          <RowGap rows={first} />
          {rows.slice(first, end).map((row, offset) => (
            <Line
              key={first + offset}
              {...{ row, columns }}
              index={first + offset}
              isCurrent={first + offset === at}
              onSelect={() => setCurrent(first + offset)}
              onOpen={() => onOpen(row)}
              onMenu={(point) => {
                setCurrent(first + offset);
                onMenu(row, point);
              }}
            />
          ))}
          <RowGap rows={rows.length - end} />
        </tbody>
      </table>
    </div>
  );
}

interface LineProperties<Row extends FunctionRow> {
  row: Row;
  columns: readonly FigureColumn<Row>[];
  index: number;
  isCurrent: boolean;
  onSelect(): void;
  onOpen(): void;
  onMenu(at: { x: number; y: number }): void;
}

function Line<Row extends FunctionRow>(properties: LineProperties<Row>) {
  const { row, columns, index, isCurrent, onSelect, onOpen, onMenu } = properties;
  const kind = toKind(row.kind);
  const file = row.file || row.mapping;
  return (
    <tr
      id={`function-${index}`}
      class={isCurrent ? 'current' : ''}
      aria-rowindex={index + 2}
      aria-selected={isCurrent}
      onClick={onSelect}
      onDblClick={onOpen}
      onContextMenu={(event) => {
        event.preventDefault();
        onMenu({ x: event.clientX, y: event.clientY });
      }}
    >
      {columns.map(({ name, format, tone }) => (
        <td key={name} class={`figure ${tone?.(row) ?? ''}`}>
          {format(row)}
        </td>
      ))}
      <td title={row.name}>
        <KindSwatch kind={kind} />
        {row.name}
      </td>
      <td class="kind">{kindLabel(kind)}</td>
      <td class="file" title={file}>
        {file}
      </td>
    </tr>
  );
}
