import { LinkTable } from '../../../common/profile/model/link.ts';
import type { Link } from '../../../common/profile/model/profile.ts';
import { SeriesTable } from '../series-table.ts';
import type { Stacks } from '../store.ts';
import { FrameTable } from './frame-table.ts';
import { StackTree } from './stack-tree.ts';

/** Dictionaries that samples of a part refer to, while samples are added: each entry once. */
export class StackDictionaries {
  readonly frames = new FrameTable({ keepsLines: true });
  readonly tree = new StackTree();
  readonly seriesTable = new SeriesTable();
  readonly linkTable = new LinkTable();

  get bytes(): number {
    return this.frames.bytes + this.tree.bytes + this.seriesTable.bytes + this.linkTable.bytes;
  }

  get groups(): SeriesTable['groups'] {
    return this.seriesTable.groups;
  }

  async series(): Promise<SeriesTable> {
    return this.seriesTable;
  }

  async links(): Promise<readonly Link[]> {
    return this.linkTable.links;
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
