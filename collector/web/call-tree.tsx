import { useMemo, useRef, useState } from 'preact/hooks';
import { type FlameModel, functionOf, kindOf, nameOf } from './flame-model.ts';
import { formatCount, formatShare } from './format.ts';
import type { MenuRequest } from './function-menu.tsx';
import { KindSwatch } from './kind-swatch.tsx';
import { kindLabel } from './kinds.ts';
import { RowGap } from './row-gap.tsx';
import type { SearchResult } from './search.ts';
import { listRows, type TreeRowData } from './tree-rows.ts';
import { useRows } from './use-rows.ts';

/** Deeper rows are not moved further to the right. */
const MAX_INDENT = 40;

interface Properties {
  model: FlameModel;
  root: number;
  found: SearchResult | undefined;
  onZoom(node: number): void;
  onMenu(request: MenuRequest): void;
}

/** The flame graph as a table of rows that open and close; only the visible rows exist in the page. */
export function CallTree({ model, root, found, onZoom, onMenu }: Properties) {
  const scroller = useRef<HTMLDivElement>(null);
  /** Path keys of rows whose state is not the one they start with. */
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set());
  const [current, setCurrent] = useState('');
  const rows = useMemo(() => listRows(model, root, toggled), [model, root, toggled]);
  const currentIndex = Math.max(
    0,
    rows.findIndex(({ node }) => model.pathKey[node] === current),
  );
  const { first, end: last, pageRows, onScroll } = useRows(scroller, rows.length, currentIndex);
  const toggle = (node: number): void => {
    const next = new Set(toggled);
    if (!next.delete(model.pathKey[node]!)) next.add(model.pathKey[node]!);
    setToggled(next);
  };
  const moveTo = (index: number): void => {
    const row = rows[Math.min(rows.length - 1, Math.max(0, index))];
    if (row !== undefined) setCurrent(model.pathKey[row.node]!);
  };
  const openMenu = (node: number, at: MenuRequest['at']): void => {
    const target = functionOf(model, node);
    if (target !== undefined) onMenu({ target, at });
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const row = rows[currentIndex];
    if (row === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    const actions: Record<string, () => void> = {
      ArrowDown: () => moveTo(currentIndex + 1),
      ArrowUp: () => moveTo(currentIndex - 1),
      PageDown: () => moveTo(currentIndex + pageRows),
      PageUp: () => moveTo(currentIndex - pageRows),
      Home: () => moveTo(0),
      End: () => moveTo(rows.length - 1),
      ArrowRight: () => (row.isOpen ? moveTo(currentIndex + 1) : row.hasChildren && toggle(row.node)),
      ArrowLeft: () => (row.isOpen ? toggle(row.node) : setCurrent(model.pathKey[model.parent[row.node]!]!)),
      Enter: () => onZoom(row.node),
      m: () => {
        const box = scroller.current!.querySelector('tr.current')?.getBoundingClientRect();
        openMenu(row.node, { x: (box?.left ?? 0) + 300, y: box?.bottom ?? 0 });
      },
      Backspace: () => onZoom(model.parent[root]!),
    };
    const action = actions[event.key];
    if (action === undefined) return;
    action();
    event.preventDefault();
  };

  return (
    <div ref={scroller} class="tree" onScroll={onScroll}>
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
            <th scope="col" class="figure">
              Total
            </th>
            <th scope="col" class="figure">
              Self
            </th>
            <th scope="col" class="figure">
              Samples
            </th>
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
              onMenu={(at) => openMenu(row.node, at)}
            />
          ))}
          <RowGap rows={rows.length - last} />
        </tbody>
      </table>
    </div>
  );
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
  onMenu(at: MenuRequest['at']): void;
}

function TreeRow(properties: RowProperties) {
  const { model, root, row, index, isCurrent, isMatch, onSelect, onToggle, onZoom, onMenu } = properties;
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
      onContextMenu={(event) => {
        event.preventDefault();
        onSelect();
        onMenu({ x: event.clientX, y: event.clientY });
      }}
    >
      <td class="figure">{formatShare(model.total[node]! / all)}</td>
      <td class="figure">{formatShare(model.self[node]! / all)}</td>
      <td class="figure">{formatCount(model.total[node]!)}</td>
      <td class="tree-name" title={nameOf(model, node)}>
        <span style={{ paddingLeft: `${Math.min(level, MAX_INDENT) * 14}px` }}>
          {/* biome-ignore lint/a11y/useKeyWithClickEvents: arrow keys open and close rows */}
          {/* biome-ignore lint/a11y/noStaticElementInteractions: a target for the pointer only */}
          <i class={hasChildren ? `twisty${isOpen ? ' open' : ''}` : 'twisty none'} onClick={onToggle} />
          <KindSwatch kind={kind} />
          {nameOf(model, node)}
        </span>
      </td>
      <td class="kind">{kindLabel(kind)}</td>
      <td class="file" title={file}>
        {file}
      </td>
    </tr>
  );
}
