/** A store whose frames have the names that came later: what is stored stays as it was sent. */

import { PartView } from '../store/part-view.ts';
import type {
  Frame,
  RowQuery,
  Rows,
  SamplePart,
  Stacks,
  Store,
  TimeRange,
  TypedRange,
} from '../store/store.ts';
import { FrameTable } from '../store/trees/frame-table.ts';
import { StackTree } from '../store/trees/stack-tree.ts';
import type { LateNames } from './late-names.ts';

type ReadStore = Pick<Store, 'parts' | 'stats' | 'types'>;

/** The parts of a store with late names. */
export function withLateNames(store: ReadStore, names: LateNames): ReadStore {
  return {
    stats: () => store.stats(),
    types: (range) => store.types(range),
    async parts(range: TypedRange) {
      const parts = await store.parts(range);
      return names.isEmpty ? parts : parts.map((part) => new NamedPart(part, names));
    },
  };
}

/**
 * A part whose frames without a name are replaced by those that a file has for their address. Inlined functions make
 * several of one, and several addresses of a function become one, so nodes have other ids here.
 */
class NamedPart extends PartView {
  readonly #names: LateNames;
  /** Settled by the first look, so that all of one query sees the same ids. */
  #naming: Promise<Naming | undefined> | undefined;

  constructor(part: SamplePart, names: LateNames) {
    super(part);
    this.#names = names;
  }

  isWithin(range: TimeRange): boolean {
    return this.part.isWithin?.(range) ?? false;
  }

  override async stacks(): Promise<Stacks> {
    const stacks = await this.part.stacks();
    const naming = await this.#namingOf(stacks);
    if (naming === undefined) return stacks;
    naming.extend(stacks);
    return naming.stacks();
  }

  override async rows(query: RowQuery): Promise<Rows> {
    const wantsNodes = query.by.includes('node');
    if (!wantsNodes && query.nodes === undefined) return this.part.rows(query);
    const naming = await this.#namingOf(await this.part.stacks());
    if (naming === undefined) return this.part.rows(query);
    const nodes = query.nodes && naming.toOld(query.nodes);
    const rows = await this.part.rows({ ...query, nodes });
    if (!wantsNodes || rows.nodes === undefined) return rows;
    // The part may have grown meanwhile.
    naming.extend(await this.part.stacks());
    return { ...rows, nodes: naming.toNew(rows.nodes) };
  }

  #namingOf(stacks: Stacks): Promise<Naming | undefined> {
    this.#naming ??= startNaming(stacks, this.#names);
    return this.#naming;
  }
}

/** Undefined where no frame gets a name. */
async function startNaming(stacks: Stacks, names: LateNames): Promise<Naming | undefined> {
  const chains = await names.resolve(stacks.frames);
  if (chains.size === 0) return undefined;
  const naming = new Naming(chains);
  naming.extend(stacks);
  return naming;
}

/** Grows with its part: nodes that are there keep their ids. */
class Naming {
  readonly #chains: ReadonlyMap<Frame, readonly Frame[]>;
  readonly #table = new FrameTable({ keepsLines: true });
  readonly #tree = new StackTree();
  /** By old frame: ids of the new ones, outermost first. */
  readonly #frames: number[][] = [];
  /** By old node: the new one. */
  readonly #nodes: number[] = [0];

  constructor(chains: ReadonlyMap<Frame, readonly Frame[]>) {
    this.#chains = chains;
  }

  extend({ frames, parents, nodeFrames }: Stacks): void {
    for (let node = this.#nodes.length; node < parents.length; node++) {
      const frame = nodeFrames[node]!;
      this.#frames[frame] ??= this.#newFrames(frames[frame]!);
      let at = this.#nodes[parents[node]!]!;
      for (const id of this.#frames[frame]!) at = this.#tree.child(at, id);
      this.#nodes.push(at);
    }
  }

  stacks(): Stacks {
    const { parents, frames, size } = this.#tree;
    return {
      frames: this.#table.frames,
      parents: parents.slice(0, size),
      nodeFrames: frames.slice(0, size),
    };
  }

  toOld(mask: Uint8Array): Uint8Array {
    return Uint8Array.from(this.#nodes, (node) => mask[node] ?? 0);
  }

  toNew(nodes: ArrayLike<number>): Uint32Array {
    return Uint32Array.from(nodes, (node) => this.#nodes[node]!);
  }

  #newFrames(frame: Frame): number[] {
    const chain = this.#chains.get(frame) ?? [frame];
    return chain.map((one) => this.#table.intern(one));
  }
}
