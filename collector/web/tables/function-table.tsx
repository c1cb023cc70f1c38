import { useState } from 'preact/hooks';
import type { FrameKind } from '../../../common/flame/frame-kind.ts';
import type { FunctionRef } from '../state/function-actions.ts';
import { RowTable } from './row-table.tsx';

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
  /** S: its source. */
  onSource?(row: Row): void;
  onMenu(row: Row, at: { x: number; y: number }): void;
}

/** Functions with figures. */
export function FunctionTable<Row extends FunctionRow>(properties: Properties<Row>) {
  const { label, rows, columns, sort, onSort, onOpen, onSource, onMenu } = properties;
  const [current, setCurrent] = useState(0);
  return (
    <RowTable
      {...{ label, rows, onOpen, onMenu }}
      role="grid"
      heads={columns}
      sort={{ by: sort, onSort }}
      keyOf={(_, index) => index}
      contentOf={(row) => ({
        figures: columns.map(({ format, tone }) => ({ text: format(row), tone: tone?.(row) ?? '' })),
        name: row.name,
        kind: row.kind,
        place: row.file || row.mapping,
      })}
      current={Math.min(current, Math.max(0, rows.length - 1))}
      onCurrent={setCurrent}
      keys={{ Enter: onOpen, ...(onSource && { s: onSource }) }}
    />
  );
}
