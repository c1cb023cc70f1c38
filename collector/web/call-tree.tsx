import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { type FlameModel, kindOf, nameOf } from './flame-model.ts';
import { formatCount, formatShare } from './format.ts';
import { KindSwatch } from './kind-swatch.tsx';
import { kindLabel } from './kinds.ts';
import type { SearchResult } from './search.ts';
import { listRows, type TreeRowData } from './tree-rows.ts';
import { useSize } from './use-browser.ts';

const ROW_HEIGHT = 28;
const OVERSCAN = 8;
/** Deeper rows are not moved further to the right. */
const MAX_INDENT = 40;

interface Properties {
  model: FlameModel;
  root: number;
  found: SearchResult | undefined;
  onZoom(node: number): void;
}

/** The flame graph as a table of rows that open and close; only the visible rows exist in the page. */
export function CallTree({ model, root, found, onZoom }: Properties) {
  const scroller = useRef<HTMLDivElement>(null);
  const { height } = useSize(scroller);
  const [scrollTop, setScrollTop] = useState(0);
  /** Path keys of rows whose state is not the one they start with. */
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set());
  const [current, setCurrent] = useState('');
  const rows = useMemo(() => listRows(model, root, toggled), [model, root, toggled]);
  const currentIndex = Math.max(
    0,
    rows.findIndex(({ node }) => model.pathKey[node] === current),
  );
  const first = Math.max(0, Math.floor(scrollTop / ROW_HEIGHT) - OVERSCAN);
  const last = Math.min(rows.length, Math.ceil((scrollTop + height) / ROW_HEIGHT) + OVERSCAN);

  useEffect(() => {
    const view = scroller.current!;
    const top = currentIndex * ROW_HEIGHT;
    if (top < view.scrollTop) view.scrollTop = top;
    else if (top + 2 * ROW_HEIGHT > view.scrollTop + height) view.scrollTop = top + 2 * ROW_HEIGHT - height;
  }, [currentIndex]);
  const toggle = (node: number): void => {
    const next = new Set(toggled);
    if (!next.delete(model.pathKey[node]!)) next.add(model.pathKey[node]!);
    setToggled(next);
  };
  const moveTo = (index: number): void => {
    const row = rows[Math.min(rows.length - 1, Math.max(0, index))];
    if (row !== undefined) setCurrent(model.pathKey[row.node]!);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const row = rows[currentIndex];
    if (row === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    const actions: Record<string, () => void> = {
      ArrowDown: () => moveTo(currentIndex + 1),
      ArrowUp: () => moveTo(currentIndex - 1),
      PageDown: () => moveTo(currentIndex + Math.floor(height / ROW_HEIGHT) - 2),
      PageUp: () => moveTo(currentIndex - Math.floor(height / ROW_HEIGHT) + 2),
      Home: () => moveTo(0),
      End: () => moveTo(rows.length - 1),
      ArrowRight: () => (row.isOpen ? moveTo(currentIndex + 1) : row.hasChildren && toggle(row.node)),
      ArrowLeft: () => (row.isOpen ? toggle(row.node) : setCurrent(model.pathKey[model.parent[row.node]!]!)),
      Enter: () => onZoom(row.node),
      Backspace: () => onZoom(model.parent[root]!),
    };
    const action = actions[event.key];
    if (action === undefined) return;
    action();
    event.preventDefault();
  };

  return (
    <div ref={scroller} class="tree" onScroll={() => setScrollTop(scroller.current!.scrollTop)}>
      <table
        // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: a treegrid is a table that opens
        role="treegrid"
        aria-label="Call tree"
        aria-rowcount={rows.length + 1}
        aria-activedescendant={`row-${currentIndex}`}
        tabIndex={0}
        onKeyDown={onKeyDown}
      >
        <thead>
          <tr aria-rowindex={1}>
            <th scope="col">Total</th>
            <th scope="col">Self</th>
            <th scope="col">Samples</th>
            <th scope="col">Function</th>
            <th scope="col">Kind</th>
            <th scope="col">File</th>
          </tr>
        </thead>
        <tbody>
          <Gap rows={first} />
          {rows.slice(first, last).map((row, offset) => (
            <TreeRow
              key={model.pathKey[row.node]}
              {...{ model, root, row }}
              index={first + offset}
              isCurrent={first + offset === currentIndex}
              isMatch={found !== undefined && found.frames[model.frame[row.node]!] === 1}
              onSelect={() => setCurrent(model.pathKey[row.node]!)}
              onToggle={() => toggle(row.node)}
              onZoom={() => onZoom(row.node)}
            />
          ))}
          <Gap rows={rows.length - last} />
        </tbody>
      </table>
    </div>
  );
}

/** Stands for rows outside of the viewport. */
function Gap({ rows }: { rows: number }) {
  return rows > 0 ? <tr style={{ height: `${rows * ROW_HEIGHT}px` }} /> : null;
}

interface RowProperties {
  model: FlameModel;
  root: number;
  row: TreeRowData;
  index: number;
  isCurrent: boolean;
  isMatch: boolean;
  onSelect(): void;
  onToggle(): void;
  onZoom(): void;
}

function TreeRow({ model, root, row, index, isCurrent, isMatch, onSelect, onToggle, onZoom }: RowProperties) {
  const { node, level, isOpen, hasChildren } = row;
  const all = model.total[root]!;
  const frame = model.frame[node]!;
  const kind = kindOf(model, node);
  const file = model.files[frame]! || model.mappings[frame]!;
  return (
    <tr
      id={`row-${index}`}
      class={`${isCurrent ? 'current' : ''} ${isMatch ? 'match' : ''}`}
      aria-rowindex={index + 2}
      aria-level={level + 1}
      aria-expanded={hasChildren ? isOpen : undefined}
      aria-selected={isCurrent}
      onClick={onSelect}
      onDblClick={onZoom}
    >
      <td>{formatShare(model.total[node]! / all)}</td>
      <td>{formatShare(model.self[node]! / all)}</td>
      <td>{formatCount(model.total[node]!)}</td>
      <td class="tree-name" title={nameOf(model, node)}>
        <span style={{ paddingLeft: `${Math.min(level, MAX_INDENT) * 14}px` }}>
          {/* biome-ignore lint/a11y/useKeyWithClickEvents: arrow keys open and close rows */}
          {/* biome-ignore lint/a11y/noStaticElementInteractions: a target for the pointer only */}
          <i class={hasChildren ? `twisty${isOpen ? ' open' : ''}` : 'twisty none'} onClick={onToggle} />
          <KindSwatch kind={kind} />
          {nameOf(model, node)}
        </span>
      </td>
      <td>{kindLabel(kind)}</td>
      <td class="tree-file" title={file}>
        {file}
      </td>
    </tr>
  );
}
