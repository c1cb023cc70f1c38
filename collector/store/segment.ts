import { FrameTable } from './frame-table.ts';
import { SampleColumns } from './sample-columns.ts';
import { StackTree } from './stack-tree.ts';
import type { RowQuery, Rows, SamplePart, Series, StackCounts } from './store.ts';

export const SEGMENT_MS = 60_000;

/** Rough cost of a series in V8's heap, its map entry and key included, without its texts. */
const SERIES_BYTES = 500;

/**
 * The samples of one minute with the dictionaries that only they need: dropping the segment frees both.
 * A minute with more samples than a segment may hold has several.
 */
export class Segment implements SamplePart {
  readonly startMs: number;
  readonly frames = new FrameTable();
  readonly tree = new StackTree();
  readonly columns = new SampleColumns();
  readonly series: Series[] = [];
  readonly #seriesIds = new Map<string, number>();
  #seriesBytes = 0;

  constructor(startMs: number) {
    this.startMs = startMs;
  }

  get endMs(): number {
    return this.startMs + SEGMENT_MS;
  }

  get bytes(): number {
    return this.frames.bytes + this.tree.bytes + this.columns.bytes + this.#seriesBytes;
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
  async stacks(): Promise<Omit<StackCounts, 'selfCounts'>> {
    const { tree, frames } = this;
    return {
      frames: frames.frames,
      parents: tree.parents.slice(0, tree.size),
      nodeFrames: tree.frames.slice(0, tree.size),
    };
  }

  async rows(query: RowQuery): Promise<Rows> {
    return this.columns.select(query, this.startMs);
  }
}

export function seriesKey(series: Series): string {
  const { process, thread, path, command, containerId, cgroup, service, host } = series;
  const numbers = `${series.pid}/${series.tid}/${series.startUnixNano}/${series.periodNanos}`;
  return [numbers, process, thread, path, command, containerId, cgroup, service, host].join('\0');
}
