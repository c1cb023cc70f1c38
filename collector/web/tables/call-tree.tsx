import { useMemo, useState } from 'preact/hooks';
import { type FlameModel, functionOf, kindOf, nameOf, pathKeyOf } from '../../../common/flame/flame-model.ts';
import { formatShare } from '../../../common/flame/format.ts';
import { formatterOf } from '../../../common/flame/shown-type.ts';
import type { FunctionRef } from '../state/function-actions.ts';
import type { MenuRequest } from '../state/function-menu.tsx';
import type { SearchResult } from '../state/search.ts';
import { RowTable } from './row-table.tsx';
import { listRows, type TreeRowData } from './tree-rows.ts';

interface Properties {
  model: FlameModel;
  root: number;
  found: SearchResult | undefined;
  onZoom(node: number): void;
  onSource(target: FunctionRef): void;
  onMenu(request: MenuRequest): void;
}

/** The last says what is counted: `Samples`, `Waiting`. */
const headsOf = ({ type }: FlameModel) => {
  const { column } = formatterOf(type);
  return [{ name: 'Total' }, { name: 'Self' }, { name: column[0]!.toUpperCase() + column.slice(1) }];
};

/** The flame graph as a table of rows that open and close. */
export function CallTree({ model, root, found, onZoom, onSource, onMenu }: Properties) {
  /** Path keys of rows whose state is not the one they start with. */
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set());
  const [currentKey, setCurrentKey] = useState('');
  const rows = useMemo(() => listRows(model, root, toggled), [model, root, toggled]);
  const keyOf = ({ node }: TreeRowData): string => pathKeyOf(model, node);
  const current = Math.max(
    0,
    rows.findIndex((row) => keyOf(row) === currentKey),
  );
  const toggle = (row: TreeRowData): void => {
    const next = new Set(toggled);
    if (!next.delete(keyOf(row))) next.add(keyOf(row));
    setToggled(next);
  };
  const moveTo = (index: number): void => {
    const row = rows[index];
    if (row !== undefined) setCurrentKey(keyOf(row));
  };
  return (
    <RowTable
      label="Call tree"
      role="treegrid"
      heads={headsOf(model)}
      {...{ rows, keyOf, current }}
      contentOf={(row) => contentOf(model, model.total[root]!, row, found)}
      onCurrent={moveTo}
      onOpen={({ node }) => onZoom(node)}
      onToggle={toggle}
      onMenu={({ node }, at) => {
        const target = functionOf(model, node);
        if (target !== undefined) onMenu({ target, at });
      }}
      keys={{
        ArrowRight: (row) => (row.isOpen ? moveTo(current + 1) : row.hasChildren && toggle(row)),
        ArrowLeft: (row) =>
          row.isOpen ? toggle(row) : setCurrentKey(pathKeyOf(model, model.parent[row.node]!)),
        Enter: ({ node }) => onZoom(node),
        s: ({ node }) => {
          const target = functionOf(model, node);
          if (target !== undefined) onSource(target);
        },
        Backspace: () => onZoom(model.parent[root]!),
      }}
    />
  );
}

function contentOf(model: FlameModel, all: number, tree: TreeRowData, found: SearchResult | undefined) {
  const { node } = tree;
  const frame = model.frame[node]!;
  const total = model.total[node]!;
  return {
    figures: [
      { text: formatShare(total / all) },
      { text: formatShare(model.self[node]! / all) },
      { text: formatterOf(model.type).cell(total) },
    ],
    name: nameOf(model, node),
    kind: kindOf(model, node),
    place: model.files[frame]! || model.mappings[frame]!,
    isMatch: found?.frames[frame] === 1,
    tree,
  };
}
