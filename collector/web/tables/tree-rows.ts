import { type FlameModel, pathKeyOf } from '../../../common/flame/flame-model.ts';

export interface TreeRowData {
  node: number;
  /** 0 for the zoomed box. */
  level: number;
  isOpen: boolean;
  hasChildren: boolean;
}

/** A path that holds at least this share of the view starts open. */
const OPEN_SHARE = 0.5;
/** More rows than anybody reads; what is closed does not count. */
const MAX_ROWS = 50_000;

/** The rows of the call tree, callees under their caller, the largest first. */
export function listRows(model: FlameModel, root: number, toggled: ReadonlySet<string>): TreeRowData[] {
  const rows: TreeRowData[] = [];
  const threshold = model.total[root]! * OPEN_SHARE;
  const stack = [{ node: root, level: 0 }];
  for (let next = stack.pop(); next !== undefined && rows.length < MAX_ROWS; next = stack.pop()) {
    const { node, level } = next;
    const hasChildren = model.childCount[node]! > 0;
    const startsOpen = level === 0 || model.total[node]! >= threshold;
    const isOpen = hasChildren && startsOpen !== toggled.has(pathKeyOf(model, node));
    rows.push({ node, level, isOpen, hasChildren });
    if (!isOpen) continue;
    const children = childrenOf(model, node).sort((a, b) => model.total[a]! - model.total[b]! || b - a);
    for (const child of children) stack.push({ node: child, level: level + 1 });
  }
  return rows;
}

function childrenOf(model: FlameModel, node: number): number[] {
  const first = model.firstChild[node]!;
  return Array.from({ length: model.childCount[node]! }, (_, i) => first + i);
}
