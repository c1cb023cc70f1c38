/** How good the stored samples are: what of them is whole, named and attributed, and which processes are worst. */
import { unnamedReasonOf } from '../../common/profile/model/unnamed-markers.ts';
import type { StackCounts } from '../store/store.ts';

export interface Quality {
  samples: number;
  /** Events whose stack was not cut. */
  unwound: number;
  /** Events all of whose frames have a function's name. */
  named: number;
  /** Events whose process is known. */
  attributed: number;
  /** Why stacks were cut, by the name of the frame that ends them: the most frequent first. */
  cuts: { marker: string; samples: number }[];
  /** Why functions of a language runtime have no name, by what stands in its place: events with at least one, most first. */
  unread: { marker: string; samples: number }[];
  /** Processes with the most events that are cut or not wholly named. */
  worst: Tally[];
}

const MAX_WORST = 10;
/** Our agent has eleven of either; a sender could give each stack another. */
const MAX_CUTS = 20;
const CUT = 1;
const UNNAMED = 2;
const UNREAD = 4;
const NONE = -1;

interface Tally {
  process: string;
  samples: number;
  cut: number;
  unnamed: number;
}

/** Of parts that come one after the other; none is kept. */
export class QualityMeter {
  readonly #processes = new Map<string, Tally>();
  readonly #quality: Quality = {
    samples: 0,
    unwound: 0,
    named: 0,
    attributed: 0,
    cuts: [],
    unread: [],
    worst: [],
  };
  readonly #cuts = new Map<string, number>();
  readonly #unread = new Map<string, number>();

  add(part: StackCounts): void {
    addPart(part, this.#quality, this.#processes, { cuts: this.#cuts, unread: this.#unread });
  }

  get quality(): Quality {
    const worst = [...this.#processes.values()]
      .filter(({ cut, unnamed }) => cut + unnamed > 0)
      .sort((a, b) => b.cut + b.unnamed - a.cut - a.unnamed)
      .slice(0, MAX_WORST);
    return { ...this.#quality, cuts: listMost(this.#cuts), unread: listMost(this.#unread), worst };
  }
}

function addPart(
  { frames, parents, nodeFrames, selfCounts }: StackCounts,
  quality: Quality,
  processes: Map<string, Tally>,
  { cuts, unread }: Record<'cuts' | 'unread', Map<string, number>>,
): void {
  const flaws = frames.map(({ kind, name }) => {
    if (kind === 'process') return 0;
    if (kind === 'abort-marker') return CUT;
    if (unnamedReasonOf(name)) return UNNAMED | UNREAD;
    return /\+0x[0-9a-f]+$|^\[.*\]$/.test(name) ? UNNAMED : 0;
  });
  const found = new Uint8Array(parents.length);
  /** The marker's frame, where there is one above: the first, as there should be no other. */
  const markers = new Int32Array(parents.length).fill(NONE);
  const firstUnread = new Int32Array(parents.length).fill(NONE);
  const byFrame = new Float64Array(frames.length);
  const unreadByFrame = new Float64Array(frames.length);
  const ofNode: Tally[] = [];
  for (let node = 1; node < parents.length; node++) {
    const frame = nodeFrames[node]!;
    const parent = parents[node]!;
    if (parent === 0) {
      const process = frames[frame]!.name;
      const known = processes.get(process) ?? { process, samples: 0, cut: 0, unnamed: 0 };
      processes.set(process, known);
      ofNode[node] = known;
    } else {
      ofNode[node] = ofNode[parent]!;
      found[node] = found[parent]! | flaws[frame]!;
      markers[node] = markers[parent] !== NONE ? markers[parent]! : flaws[frame]! & CUT ? frame : NONE;
      const above = firstUnread[parent]!;
      firstUnread[node] = above !== NONE ? above : flaws[frame]! & UNREAD ? frame : NONE;
    }
    const count = selfCounts[node]!;
    const tally = ofNode[node]!;
    quality.samples += count;
    tally.samples += count;
    if (found[node]! & CUT) {
      tally.cut += count;
      byFrame[markers[node]!]! += count;
    } else quality.unwound += count;
    if (found[node]! & UNREAD) unreadByFrame[firstUnread[node]!]! += count;
    if (found[node]! & UNNAMED) tally.unnamed += count;
    else quality.named += count;
    if (tally.process !== '(unknown process)') quality.attributed += count;
  }
  addByName(frames, byFrame, cuts);
  addByName(frames, unreadByFrame, unread);
}

function addByName(frames: StackCounts['frames'], byFrame: Float64Array, counts: Map<string, number>): void {
  for (const [frame, count] of byFrame.entries()) {
    const { name } = frames[frame]!;
    if (count > 0) counts.set(name, (counts.get(name) ?? 0) + count);
  }
}

const listMost = (counts: ReadonlyMap<string, number>): { marker: string; samples: number }[] =>
  [...counts]
    .map(([marker, samples]) => ({ marker, samples }))
    .sort((a, b) => b.samples - a.samples || (a.marker < b.marker ? -1 : 1))
    .slice(0, MAX_CUTS);
