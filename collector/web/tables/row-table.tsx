import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import { kindLabel, toKind } from '../../../common/flame/kinds.ts';
import { KindSwatch } from '../flame/kind-swatch.tsx';
import { useRows } from '../state/use-rows.ts';
import { RowGap } from './row-gap.tsx';
import { besideCurrent, stepOf } from './row-keys.ts';

/** A column of figures, left of the function's name. */
export interface Head {
  name: string;
  /** What the figures are; shown where the column can be sorted by. */
  title?: string;
}

/** What a row shows. */
export interface RowContent {
  figures: readonly { text: string; tone?: string }[];
  name: string;
  kind: string;
  /** Source file, or what holds the code. */
  place: string;
  isMatch?: boolean;
  /** Only in a tree. */
  tree?: { level: number; isOpen: boolean; hasChildren: boolean };
}

interface Properties<Row> {
  label: string;
  role: 'grid' | 'treegrid';
  heads: readonly Head[];
  /** Given: a head sorts by its column, and this one does. */
  sort?: { by: string; onSort(name: string): void };
  rows: readonly Row[];
  keyOf(row: Row, index: number): string | number;
  contentOf(row: Row): RowContent;
  current: number;
  onCurrent(index: number): void;
  /** Double click. */
  onOpen(row: Row): void;
  onToggle?(row: Row): void;
  onMenu(row: Row, at: { x: number; y: number }): void;
  /** By key: what it does to the current row, besides moving and the menu. */
  keys: Readonly<Record<string, (row: Row) => void>>;
}

/** Functions with figures, as a list or as a tree; only the visible rows exist in the page. */
export function RowTable<Row>(properties: Properties<Row>) {
  const { label, role, rows, keyOf, current } = properties;
  const scroller = useRef<HTMLDivElement>(null);
  const { first, end, pageRows, onScroll } = useRows(scroller, rows.length, current);
  return (
    <div ref={scroller} class={role === 'grid' ? 'tree functions' : 'tree'} onScroll={onScroll}>
      {/* biome-ignore lint/a11y/useAriaPropsSupportedByRole: either role has a current row */}
      <table
        role={role}
        aria-label={label}
        aria-rowcount={rows.length + 1}
        aria-activedescendant={rows.length === 0 ? undefined : `row-${current}`}
        tabIndex={0}
        onKeyDown={(event) => pressKey(event, properties, pageRows)}
      >
        <TableHead {...properties} />
        <tbody>
          <RowGap rows={first} />
          {rows.slice(first, end).map((row, offset) => (
            <TableRow key={keyOf(row, first + offset)} {...{ properties, row }} index={first + offset} />
          ))}
          <RowGap rows={rows.length - end} />
        </tbody>
      </table>
    </div>
  );
}

function pressKey<Row>(event: KeyboardEvent, properties: Properties<Row>, pageRows: number): void {
  const { rows, current, keys, onCurrent, onMenu } = properties;
  const row = rows[current];
  if (row === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
  const step = stepOf(event.key, pageRows, rows.length);
  if (step !== undefined) onCurrent(Math.min(rows.length - 1, Math.max(0, current + step)));
  else if (event.key === 'm' || event.key === 'ContextMenu') onMenu(row, besideCurrent(event));
  else if (Object.hasOwn(keys, event.key)) keys[event.key]!(row);
  else return;
  event.preventDefault();
}

function TableHead<Row>({ heads, sort }: Pick<Properties<Row>, 'heads' | 'sort'>) {
  return (
    <thead>
      <tr aria-rowindex={1}>
        {heads.map(({ name, title }) =>
          sort === undefined ? (
            <th key={name} scope="col" class="figure">
              {name}
            </th>
          ) : (
            <th key={name} scope="col" class="figure" aria-sort={name === sort.by ? 'descending' : 'none'}>
              <button type="button" class="plain" title={title} onClick={() => sort.onSort(name)}>
                {name}
                {name === sort.by ? ' ▾' : ''}
              </button>
            </th>
          ),
        )}
        <th scope="col">Function</th>
        <th scope="col" class="kind">
          Kind
        </th>
        <th scope="col" class="file">
          File
        </th>
      </tr>
    </thead>
  );
}

interface RowProperties<Row> {
  properties: Properties<Row>;
  row: Row;
  index: number;
}

function TableRow<Row>({ properties, row, index }: RowProperties<Row>) {
  const { contentOf, current, onCurrent, onOpen, onMenu } = properties;
  const content = contentOf(row);
  const { figures, name, place, isMatch, tree } = content;
  const kind = toKind(content.kind);
  const isCurrent = index === current;
  return (
    <tr
      id={`row-${index}`}
      class={`${isCurrent ? 'current' : ''} ${isMatch ? 'match' : ''}`}
      aria-rowindex={index + 2}
      aria-level={tree && tree.level + 1}
      aria-expanded={tree?.hasChildren ? tree.isOpen : undefined}
      aria-selected={isCurrent}
      onClick={() => onCurrent(index)}
      onDblClick={() => onOpen(row)}
      onContextMenu={(event) => {
        event.preventDefault();
        onCurrent(index);
        onMenu(row, { x: event.clientX, y: event.clientY });
      }}
    >
      {figures.map(({ text, tone }, column) => (
        <td key={column} class={`figure ${tone ?? ''}`}>
          {text}
        </td>
      ))}
      <td class={tree && 'tree-name'} title={name}>
        <Indented tree={tree} onToggle={() => properties.onToggle?.(row)}>
          <KindSwatch kind={kind} />
          {name}
        </Indented>
      </td>
      <td class="kind">{kindLabel(kind)}</td>
      <td class="file" title={place}>
        {place}
      </td>
    </tr>
  );
}

/** Deeper rows are not moved further to the right. */
const MAX_INDENT = 40;

interface IndentedProperties {
  tree: RowContent['tree'];
  onToggle(): void;
  children: ComponentChildren;
}

function Indented({ tree, onToggle, children }: IndentedProperties) {
  if (tree === undefined) return <>{children}</>;
  return (
    <span style={{ paddingLeft: `${Math.min(tree.level, MAX_INDENT) * 14}px` }}>
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: arrow keys open and close rows */}
      {/* biome-ignore lint/a11y/noStaticElementInteractions: a target for the pointer only */}
      <i
        class={tree.hasChildren ? `twisty${tree.isOpen ? ' open' : ''}` : 'twisty none'}
        onClick={onToggle}
      />
      {children}
    </span>
  );
}
