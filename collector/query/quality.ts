/** How good the stored samples are: what of them is whole, named and attributed, and which processes are worst. */
import type { StackCounts } from '../store/store.ts';

export interface Quality {
  samples: number;
  /** Events whose stack was not cut. */
  unwound: number;
  /** Events all of whose frames have a function's name. */
  named: number;
  /** Events whose process is known. */
  attributed: number;
  /** Processes with the most events that are cut or not wholly named. */
  worst: Tally[];
}

const MAX_WORST = 10;
const CUT = 1;
const UNNAMED = 2;

interface Tally {
  process: string;
  samples: number;
  cut: number;
  unnamed: number;
}

/** Of parts that come one after the other; none is kept. */
export class QualityMeter {
  readonly #processes = new Map<string, Tally>();
  readonly #quality: Quality = { samples: 0, unwound: 0, named: 0, attributed: 0, worst: [] };

  add(part: StackCounts): void {
    addPart(part, this.#quality, this.#processes);
  }

  get quality(): Quality {
    const worst = [...this.#processes.values()]
      .filter(({ cut, unnamed }) => cut + unnamed > 0)
      .sort((a, b) => b.cut + b.unnamed - a.cut - a.unnamed)
      .slice(0, MAX_WORST);
    return { ...this.#quality, worst };
  }
}

function addPart(
  { frames, parents, nodeFrames, selfCounts }: StackCounts,
  quality: Quality,
  processes: Map<string, Tally>,
): void {
  const flaws = frames.map(({ kind, name }) => {
    if (kind === 'process') return 0;
    return kind === 'abort-marker' ? CUT : /\+0x[0-9a-f]+$|^\[.*\]$/.test(name) ? UNNAMED : 0;
  });
  const found = new Uint8Array(parents.length);
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
    }
    const count = selfCounts[node]!;
    const tally = ofNode[node]!;
    quality.samples += count;
    tally.samples += count;
    if (found[node]! & CUT) tally.cut += count;
    else quality.unwound += count;
    if (found[node]! & UNNAMED) tally.unnamed += count;
    else quality.named += count;
    if (tally.process !== '(unknown process)') quality.attributed += count;
  }
}
