/**
 * What the samples of a picture ended in, by kind of frame and by library: from all of its samples, whatever of them has a box.
 * Each sample counts once.
 */

import type { FrameKind } from '../../../common/flame/frame-kind.ts';
import type { PathHash, ZoomKey } from '../../../common/flame/path-key.ts';
import type { Leaves } from '../../../common/flame/tree-answer.ts';
import { libraryName } from '../../../common/profile/model/library.ts';
import type { Frame, StackCounts, SummedFunctions } from '../../store/store.ts';
import { pathHashes } from './path-hashes.ts';

const MAX_LIBRARIES = 50;

/** Frames outlive the answers that name them. */
const LIBRARIES = new WeakMap<Frame, string>();

function libraryOf(frame: Frame): string {
  let library = LIBRARIES.get(frame);
  if (library === undefined) {
    library = libraryName(frame);
    LIBRARIES.set(frame, library);
  }
  return library;
}

/** A box that is looked at, and those children of it that are shown beside. */
export interface Looked extends ZoomKey {
  beside: readonly PathHash[];
}

/** Takes parts one by one; none is kept. */
export class LeafSums {
  readonly #kinds = new Map<FrameKind, number>();
  readonly #libraries = new Map<string, number>();
  #samples = 0;
  #incomplete = 0;

  /** @param looked undefined: all */
  add(part: StackCounts, looked?: Looked): void {
    const { frames, parents, nodeFrames, selfCounts } = part;
    const inside = looked && insideOf(part, looked);
    const byFrame = new Float64Array(frames.length);
    const isCut = new Uint8Array(parents.length);
    for (let node = 1; node < parents.length; node++) {
      const frame = nodeFrames[node]!;
      isCut[node] = frames[frame]!.kind === 'abort-marker' ? 1 : isCut[parents[node]!]!;
      const count = selfCounts[node]!;
      if (count === 0 || (inside !== undefined && inside[node] !== INSIDE)) continue;
      byFrame[frame]! += count;
      if (isCut[node] === 1) this.#incomplete += count;
    }
    for (const [id, count] of byFrame.entries()) if (count > 0) this.#take(frames[id]!, count);
  }

  /** Of processes whose names pass. What was cut is known of markers that have samples below them. */
  addSummed(
    { frames, processes, functions, sums: { self, total } }: SummedFunctions,
    isWanted: (process: string) => boolean,
  ): void {
    for (const [row, process] of processes.entries()) {
      if (!isWanted(frames[process]!.name)) continue;
      const frame = frames[functions[row]!]!;
      if (frame.kind === 'abort-marker') this.#incomplete += total[row]!;
      if (self[row]! > 0) this.#take(frame, self[row]!);
    }
  }

  #take(frame: Frame, count: number): void {
    this.#samples += count;
    this.#kinds.set(frame.kind, (this.#kinds.get(frame.kind) ?? 0) + count);
    const library = libraryOf(frame);
    this.#libraries.set(library, (this.#libraries.get(library) ?? 0) + count);
  }

  get leaves(): Leaves {
    const libraries = ranked(this.#libraries).map(([library, samples]) => ({ library, samples }));
    return {
      samples: this.#samples,
      kinds: ranked(this.#kinds).map(([kind, samples]) => ({ kind, samples })),
      libraries: libraries.slice(0, MAX_LIBRARIES),
      incomplete: this.#incomplete,
    };
  }
}

const ranked = <K extends string>(counts: ReadonlyMap<K, number>): [K, number][] =>
  [...counts].sort(([a, first], [b, second]) => second - first || (a < b ? -1 : 1));

const INSIDE = 1;
/** The box itself, where only the rest of its children is looked at. */
const ABOVE = 2;

function insideOf(part: StackCounts, { low, high, without, beside }: Looked): Uint8Array {
  const { parents } = part;
  const hashes = pathHashes(part);
  const isSame = (node: number, hash: PathHash): boolean =>
    hashes.low[node] === hash.low && hashes.high[node] === hash.high;
  const skipped = new Set(beside.map((hash) => `${hash.low} ${hash.high}`));
  const found = without > 0 ? ABOVE : INSIDE;
  const inside = new Uint8Array(parents.length);
  if (isSame(0, { low, high })) inside[0] = found;
  for (let node = 1; node < parents.length; node++) {
    const above = inside[parents[node]!]!;
    if (above === INSIDE) inside[node] = INSIDE;
    else if (above === ABOVE)
      inside[node] = skipped.has(`${hashes.low[node]} ${hashes.high[node]}`) ? 0 : INSIDE;
    else if (isSame(node, { low, high })) inside[node] = found;
  }
  return inside;
}
