import { type FlameModel, lastStartingBefore } from '../../../common/flame/flame-model.ts';

const PAGE_ROWS = 20;

/**
 * Where a key leads from a box, within what the zoomed box `root` shows.
 *
 * @returns the box itself at an edge, undefined for keys that lead nowhere
 */
export function walk(model: FlameModel, node: number, root: number, key: string): number | undefined {
  switch (key) {
    case 'ArrowDown':
      return largestChild(model, node);
    case 'ArrowUp':
      return model.parent[node]!;
    case 'ArrowRight':
      return neighbour(model, node, root, 1);
    case 'ArrowLeft':
      return neighbour(model, node, root, -1);
    case 'Home':
      return edgeOfRow(model, node, root, -1);
    case 'End':
      return edgeOfRow(model, node, root, 1);
    case 'PageDown':
      return repeat(node, (at) => largestChild(model, at));
    case 'PageUp':
      return repeat(node, (at) => model.parent[at]!);
    default:
      return undefined;
  }
}

/** The key that means the same where callees grow up. */
export function flipKey(key: string): string {
  const flipped: Record<string, string> = {
    ArrowUp: 'ArrowDown',
    ArrowDown: 'ArrowUp',
    PageUp: 'PageDown',
    PageDown: 'PageUp',
  };
  return flipped[key] ?? key;
}

function repeat(node: number, step: (node: number) => number): number {
  let at = node;
  for (let i = 0; i < PAGE_ROWS; i++) at = step(at);
  return at;
}

function largestChild(model: FlameModel, node: number): number {
  const first = model.firstChild[node]!;
  let largest = node;
  for (let child = first; child < first + model.childCount[node]!; child++) {
    if (largest === node || model.total[child]! > model.total[largest]!) largest = child;
  }
  return largest;
}

/** The next box of the row, where it still is under the root. */
function neighbour(model: FlameModel, node: number, root: number, step: 1 | -1): number {
  const next = node + step;
  const isVisible =
    next > 0 &&
    next < model.count &&
    model.depth[next] === model.depth[node] &&
    model.x[next]! >= model.x[root]! &&
    model.x[next]! < model.x[root]! + model.total[root]!;
  return isVisible ? next : node;
}

function edgeOfRow(model: FlameModel, node: number, root: number, step: 1 | -1): number {
  const row = model.depth[node]!;
  const from = model.x[root]!;
  if (step === 1) return lastStartingBefore(model, row, from + model.total[root]! - 0.5) ?? node;
  let first = lastStartingBefore(model, row, from) ?? model.rowStart[row]!;
  if (model.x[first]! + model.total[first]! <= from) first++;
  return model.depth[first] === row ? first : node;
}
