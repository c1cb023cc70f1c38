import { PartLinks } from '../part-links.ts';
import { SeriesTable } from '../series-table.ts';
import type { Stacks } from '../store.ts';
import { FrameTable } from './frame-table.ts';
import { StackTree } from './stack-tree.ts';

/** Dictionaries that samples of a part refer to, while samples are added: each entry once. */
export class StackDictionaries {
  readonly frames = new FrameTable({ keepsLines: true });
  readonly tree = new StackTree();
  readonly seriesTable = new SeriesTable();
  readonly linkTable = new PartLinks();

  get bytes(): number {
    return this.frames.bytes + this.tree.bytes + this.seriesTable.bytes + this.linkTable.bytes;
  }

  get groups(): SeriesTable['groups'] {
    return this.seriesTable.groups;
  }

  async series(): Promise<SeriesTable> {
    return this.seriesTable;
  }

  async links(): Promise<PartLinks> {
    return this.linkTable;
  }

  /** Copies: the tree may grow before an asynchronous reader is done. */
  async stacks(): Promise<Stacks> {
    const { tree, frames } = this;
    return {
      frames: frames.frames,
      parents: tree.parents.slice(0, tree.size),
      nodeFrames: tree.frames.slice(0, tree.size),
    };
  }
}
