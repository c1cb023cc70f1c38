import { FrameTable } from './frame-table.ts';
import { SampleColumns } from './sample-columns.ts';
import { StackTree } from './stack-tree.ts';

export const SEGMENT_MS = 60_000;

/** One execution of a process under one sampling period. */
export interface SegmentProcess {
  name: string;
  pid: number;
  path: string;
  containerId: string;
  startUnixNano: bigint;
  host: string;
  /** CPU time that one event stands for. */
  periodNanos: number;
}

/** Rough cost of a process in V8's heap, its map entry and key included, without its path. */
const PROCESS_BYTES = 400;

/**
 * The samples of one minute with the dictionaries that only they need: dropping the segment frees both.
 * A minute with more samples than a segment may hold has several.
 */
export class Segment {
  readonly startMs: number;
  readonly frames = new FrameTable();
  readonly tree = new StackTree();
  readonly columns = new SampleColumns();
  readonly processes: SegmentProcess[] = [];
  readonly #processIds = new Map<string, number>();
  #processBytes = 0;

  constructor(startMs: number) {
    this.startMs = startMs;
  }

  get endMs(): number {
    return this.startMs + SEGMENT_MS;
  }

  get bytes(): number {
    return this.frames.bytes + this.tree.bytes + this.columns.bytes + this.#processBytes;
  }

  internProcess(process: SegmentProcess): number {
    const { host, pid, startUnixNano, name, periodNanos } = process;
    const key = `${pid} ${startUnixNano} ${periodNanos} ${host} ${name}`;
    let id = this.#processIds.get(key);
    if (id === undefined) {
      id = this.processes.length;
      this.processes.push(process);
      this.#processIds.set(key, id);
      this.#processBytes +=
        PROCESS_BYTES + 2 * (key.length + process.path.length + process.containerId.length);
    }
    return id;
  }
}
