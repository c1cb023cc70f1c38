import { libraryName } from '../profile/model/library.ts';
import type { FrameKind } from './frame-kind.ts';
import { toKind } from './kinds.ts';
import { formatKey, type Hashes, hashFrame, hashPaths, type PathHash, parseZoom } from './path-key.ts';
import { CPU_SAMPLES } from './shown-type.ts';
import type { FlameGraphResponse, Leaves, TypeAnswer } from './tree-answer.ts';

/**
 * A flame graph ready to be drawn, as columns over its nodes. Breadth first: node 0 is the root, a node's
 * children are neighbours, and so are the nodes of a row, from left to right. Lengths are values of the type.
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
  /** Of the path from the root: see pathKeyOf. */
  paths: Hashes;
  names: string[];
  files: string[];
  mappings: string[];
  kinds: FrameKind[];
  /** What holds the code: see libraryName. */
  libraries: string[];
  type: TypeAnswer;
  samples: number;
  allSamples: number;
  cpuNanos: number;
  cpus: number;
  fromMs: number;
  toMs: number;
  timeline: number[];
  folded: { nodes: number; samples: number };
  /** What all samples of the box that was asked for ended in; undefined: nobody counted. */
  leaves: Leaves | undefined;
  /** Totals of the two sides where two profiles are compared; lengths are shares then, not samples. */
  comparison?: { now: Float64Array; base: Float64Array; nowSamples: number; baseSamples: number };
}

export type ModelSource = Omit<FlameGraphResponse, 'leaves'> & Partial<Pick<FlameGraphResponse, 'leaves'>>;

export function buildModel(response: ModelSource): FlameModel {
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
  const hashes = names.map((name, i) =>
    hashFrame({ name, file: files[i]!, mapping: mappings[i]!, kind: response.kinds[frames.kind[i]!]! }),
  );
  const paths = hashBoxes(
    parent,
    (node) => kinds[frame[node]!] === 'other',
    (node) => hashes[frame[node]!]!,
  );
  const { timeline, samples, allSamples, cpuNanos, cpus, fromMs, toMs, folded, leaves } = response;
  const { type = CPU_SAMPLES } = response;
  return {
    ...layOut(parent, self),
    count: parent.length,
    parent,
    frame,
    self,
    paths,
    ...{ names, files, mappings, kinds, libraries },
    ...{ type, samples, allSamples, cpuNanos, cpus, fromMs, toMs, timeline, folded, leaves },
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

/** What was folded is a box of the picture, not a part of the way to those that are in it. */
function hashBoxes(
  parent: Uint32Array,
  isOther: (node: number) => boolean,
  hashOf: (node: number) => PathHash,
): Hashes {
  const above = parent.slice();
  for (let node = 1; node < parent.length; node++) {
    const direct = parent[node]!;
    if (isOther(direct) && !isOther(node)) above[node] = above[direct]!;
  }
  return hashPaths(above, hashOf);
}

/** Identifies the path from the root by names: the same in the next answer. */
export const pathKeyOf = ({ paths: { low, high } }: FlameModel, node: number): string =>
  formatKey(low[node]!, high[node]!);

/** The node of a path, if it is there. */
export function nodeAtPath({ paths: { low, high } }: FlameModel, key: string): number | undefined {
  const path = parseZoom(key);
  if (path === undefined) return undefined;
  let node = low.indexOf(path.low);
  while (node >= 0 && high[node] !== path.high) node = low.indexOf(path.low, node + 1);
  return node < 0 ? undefined : node;
}

/** What the address and the API call a zoomed box: a box of what was folded is what the others beside it leave. '': all. */
export function zoomKeyOf(model: FlameModel, node: number): string {
  if (node === 0) return '';
  if (kindOf(model, node) !== 'other') return pathKeyOf(model, node);
  let above = model.parent[node]!;
  let beside = model.childCount[above]! - 1;
  // a remainder of a remainder: what both leave
  while (kindOf(model, above) === 'other' && above !== 0) {
    above = model.parent[above]!;
    beside += model.childCount[above]! - 1;
  }
  const box = above === 0 && beside === 0 ? '' : pathKeyOf(model, above);
  return beside === 0 ? box : `${box}~${beside}`;
}

/** The node that an address names, if it is there. */
export function findZoom(model: FlameModel, key: string): number | undefined {
  if (key === '') return 0;
  const [path = '', without] = key.split('~');
  const node = nodeAtPath(model, path);
  if (node === undefined || without === undefined) return node;
  const last = model.firstChild[node]! + model.childCount[node]! - 1;
  return model.childCount[node]! > 0 && kindOf(model, last) === 'other' ? last : undefined;
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

/** Of a box of what was folded: whether that was asked for. */
export function nameOf(model: FlameModel, node: number): string {
  if (kindOf(model, node) !== 'other') return model.names[model.frame[node]!]!;
  return model.childCount[node]! > 0 ? 'smaller boxes' : 'not loaded';
}

/** Samples at and below a node that are in no box of their own. */
export function notLoaded(model: FlameModel, root: number): number {
  const inside = subtreeOf(model, root);
  let samples = 0;
  for (let node = root; node < model.count; node++)
    if (inside[node] === 1 && kindOf(model, node) === 'other') samples += model.self[node]!;
  return samples;
}

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
