import type { FlameGraphResponse } from '../api/types.ts';
import type { FrameKind } from '../store/store.ts';
import { toKind } from './kinds.ts';
import { libraryName } from './library.ts';

/**
 * A flame graph ready to be drawn, as columns over its nodes. Breadth first: node 0 is the root, a node's
 * children are neighbours, and so are the nodes of a row, from left to right. Lengths are in samples.
 */
export interface FlameModel {
  count: number;
  parent: Uint32Array;
  /** Index into `names`, `files`, `mappings` and `kinds`. */
  frame: Uint32Array;
  self: Float64Array;
  total: Float64Array;
  /** Left edge. */
  x: Float64Array;
  depth: Uint16Array;
  firstChild: Uint32Array;
  childCount: Uint32Array;
  /** First node of each row, and one more entry for the end. */
  rowStart: number[];
  /** Identifies the path from the root by names: the same in the next answer. */
  pathKey: string[];
  nodeByPath: Map<string, number>;
  names: string[];
  files: string[];
  mappings: string[];
  kinds: FrameKind[];
  /** What holds the code: see libraryName. */
  libraries: string[];
  samples: number;
  allSamples: number;
  cpuNanos: number;
  cpus: number;
  fromMs: number;
  toMs: number;
  timeline: number[];
  folded: { nodes: number; samples: number };
  /** Totals of the two sides where two profiles are compared; lengths are shares then, not samples. */
  comparison?: { now: Float64Array; base: Float64Array; nowSamples: number; baseSamples: number };
}

export function buildModel(response: FlameGraphResponse): FlameModel {
  const parent = Uint32Array.from(response.nodes.parent);
  const frame = Uint32Array.from(response.nodes.frame);
  const self = Float64Array.from(response.nodes.self);
  const { strings, frames } = response;
  const names = frames.name.map((id) => strings[id]!);
  const files = frames.file.map((id) => strings[id]!);
  const mappings = frames.mapping.map((id) => strings[id]!);
  const kinds = frames.kind.map((id) => toKind(response.kinds[id]!));
  const libraries = names.map((name, i) =>
    libraryName({ name, file: files[i]!, mapping: mappings[i]!, kind: kinds[i]! }),
  );
  const pathKey = pathKeys(parent, frame, frameHashes(names, mappings, files, kinds));
  const { timeline, samples, allSamples, cpuNanos, cpus, fromMs, toMs, folded } = response;
  return {
    ...layOut(parent, self),
    count: parent.length,
    parent,
    frame,
    self,
    pathKey,
    nodeByPath: new Map(pathKey.map((key, node) => [key, node])),
    ...{ names, files, mappings, kinds, libraries },
    ...{ samples, allSamples, cpuNanos, cpus, fromMs, toMs, timeline, folded },
  };
}

type Layout = Pick<FlameModel, 'total' | 'x' | 'depth' | 'firstChild' | 'childCount' | 'rowStart'>;

function layOut(parent: Uint32Array, self: Float64Array): Layout {
  const count = parent.length;
  const total = self.slice();
  for (let node = count - 1; node > 0; node--) total[parent[node]!]! += total[node]!;
  const x = new Float64Array(count);
  const depth = new Uint16Array(count);
  const firstChild = new Uint32Array(count);
  const childCount = new Uint32Array(count);
  const filled = new Float64Array(count);
  const rowStart = [0];
  for (let node = 1; node < count; node++) {
    const above = parent[node]!;
    if (childCount[above]!++ === 0) firstChild[above] = node;
    x[node] = x[above]! + filled[above]!;
    filled[above]! += total[node]!;
    depth[node] = depth[above]! + 1;
    if (depth[node] === rowStart.length) rowStart.push(node);
  }
  rowStart.push(count);
  return { total, x, depth, firstChild, childCount, rowStart };
}

/** FNV-1a, 32 bit. */
function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

function frameHashes(...columns: readonly (readonly string[])[]): Uint32Array {
  return Uint32Array.from(columns[0]!, (_, frame) =>
    hashText(columns.map((column) => column[frame]).join('\0')),
  );
}

/** Two differently mixed 32-bit hashes over the path: 64 bits are enough for 20,000 paths. */
function pathKeys(parent: Uint32Array, frame: Uint32Array, hashes: Uint32Array): string[] {
  const low = new Uint32Array(parent.length);
  const high = new Uint32Array(parent.length);
  return Array.from(parent, (above, node) => {
    const hash = hashes[frame[node]!]!;
    low[node] = Math.imul((low[above]! ^ hash) + 0x9e3779b9, 0x85ebca6b);
    high[node] = Math.imul((high[above]! + hash) ^ (high[above]! >>> 15), 0xc2b2ae35) + 1;
    return low[node]!.toString(36) + high[node]!.toString(36);
  });
}

/** Root first, the node last. */
export function ancestors(model: FlameModel, node: number): number[] {
  const path = [node];
  for (let at = node; at !== 0; ) {
    at = model.parent[at]!;
    path.push(at);
  }
  return path.reverse();
}

/** 1 for `root` and each node under it. */
export function subtreeOf(model: FlameModel, root: number): Uint8Array {
  const inside = new Uint8Array(model.count);
  inside[root] = 1;
  for (let node = root + 1; node < model.count; node++) inside[node] = inside[model.parent[node]!]!;
  return inside;
}

export const nameOf = (model: FlameModel, node: number): string => model.names[model.frame[node]!]!;
export const libraryOf = (model: FlameModel, node: number): string => model.libraries[model.frame[node]!]!;
export const kindOf = (model: FlameModel, node: number): FrameKind => model.kinds[model.frame[node]!]!;

/** The function of a box; undefined for boxes that stand for something else. */
export function functionOf(
  model: FlameModel,
  node: number,
): { name: string; file: string; mapping: string } | undefined {
  const frame = model.frame[node]!;
  const kind = model.kinds[frame]!;
  if (kind === 'root' || kind === 'process' || kind === 'other') return undefined;
  return { name: model.names[frame]!, file: model.files[frame]!, mapping: model.mappings[frame]! };
}

/** The node of a row under position `x` (in samples), or undefined where the row has a gap. */
export function nodeAt(model: FlameModel, row: number, x: number): number | undefined {
  const node = lastStartingBefore(model, row, x);
  return node !== undefined && x < model.x[node]! + model.total[node]! ? node : undefined;
}

/** The last node of a row whose left edge is at or before `x`. */
export function lastStartingBefore(model: FlameModel, row: number, x: number): number | undefined {
  if (row < 0 || row >= model.rowStart.length - 1) return undefined;
  let low = model.rowStart[row]!;
  let high = model.rowStart[row + 1]!;
  const first = low;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (model.x[middle]! <= x) low = middle + 1;
    else high = middle;
  }
  return low > first ? low - 1 : undefined;
}

/** Depth of the deepest node under `root`. */
export function deepestRow(model: FlameModel, root: number): number {
  const from = model.x[root]!;
  const to = from + model.total[root]!;
  for (let row = model.rowStart.length - 2; row > model.depth[root]!; row--) {
    // Edges are whole samples: half a sample to the left of the right edge is inside.
    const node = lastStartingBefore(model, row, to - 0.5);
    if (node !== undefined && model.x[node]! + model.total[node]! > from) return row;
  }
  return model.depth[root]!;
}
