import { FrameTable } from './frame-table.ts';
import { StackTree } from './stack-tree.ts';
import type { Series, Stacks } from './store.ts';

/** Rough cost of a series in V8's heap, its map entry and key included, without its texts. */
const SERIES_BYTES = 500;

/** What samples of a part refer to, while samples are added: each entry once. */
export class StackDictionaries {
  readonly frames = new FrameTable({ keepsLines: true });
  readonly tree = new StackTree();
  readonly series: Series[] = [];
  readonly #seriesIds = new Map<string, number>();
  #seriesBytes = 0;

  get bytes(): number {
    return this.frames.bytes + this.tree.bytes + this.#seriesBytes;
  }

  internSeries(series: Series): number {
    const key = seriesKey(series);
    let id = this.#seriesIds.get(key);
    if (id === undefined) {
      id = this.series.push(series) - 1;
      this.#seriesIds.set(key, id);
      this.#seriesBytes += SERIES_BYTES + 4 * key.length;
    }
    return id;
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

function seriesKey(series: Series): string {
  const { process, thread, path, command, containerId, cgroup, service, host } = series;
  const numbers = `${series.pid}/${series.tid}/${series.startUnixNano}/${series.periodNanos}`;
  return [numbers, process, thread, path, command, containerId, cgroup, service, host].join('\0');
}
