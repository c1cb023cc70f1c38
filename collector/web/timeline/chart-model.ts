/** A flame chart: one thread's samples in the order of time, equal neighbours drawn as one box. */
import type { SamplesAnswer } from '../../api/types.ts';
import type { ThreadCount } from '../../query/threads.ts';

export interface ChartThread {
  /** Index into the answer's threads. */
  thread: number;
  title: string;
  samples: number;
}

export interface ChartBox {
  /** Index into the answer's frames. */
  frame: number;
  depth: number;
  startMs: number;
  endMs: number;
  samples: number;
}

export interface Chart {
  boxes: ChartBox[];
  rows: number;
}

/** `process · thread (PID/TID)`, of every thread. */
export const threadTitle = ({
  process,
  pid,
  thread,
  tid,
}: Pick<ThreadCount, 'process' | 'pid' | 'thread' | 'tid'>): string =>
  `${process} · ${thread || process} (${pid}/${tid})`;

/** The busiest thread first. */
export function listThreads({ threads, counts, threadTable }: SamplesAnswer): ChartThread[] {
  const sums = new Float64Array(threadTable.length);
  for (const [i, thread] of threads.entries()) sums[thread]! += counts[i]!;
  return threadTable
    .map(({ process, pid, thread, tid }, index) => ({
      thread: index,
      title: threadTitle({ process, pid, thread, tid }),
      samples: sums[index]!,
    }))
    .sort((a, b) => b.samples - a.samples || a.thread - b.thread);
}

/**
 * Each sample stands for the time up to the next one, but for no more than twice the usual distance: behind that the
 * thread was not running, and there is a gap.
 */
export function layOutChart(answer: SamplesAnswer, thread: number): Chart {
  const { times, nodes, threads, stackTable } = answer;
  const { parent, frame } = stackTable.nodes;
  const own = times.flatMap((timeMs, i) => (threads[i] === thread ? [{ timeMs, node: nodes[i]! }] : []));
  const usualMs = usualDistance(own.map(({ timeMs }) => timeMs));
  const boxes: ChartBox[] = [];
  let open: ChartBox[] = [];
  let rows = 0;
  for (const [i, { timeMs, node }] of own.entries()) {
    const next = own[i + 1]?.timeMs ?? Number.POSITIVE_INFINITY;
    const endMs = Math.min(next, timeMs + 2 * usualMs);
    const path = pathOf(parent, node);
    const isAfterGap = open.length > 0 && open[0]!.endMs < timeMs;
    let same = 0;
    while (!isAfterGap && same < path.length && open[same]?.frame === frame[path[same]!]) same++;
    open = open.slice(0, same);
    for (const box of open) {
      box.endMs = endMs;
      box.samples++;
    }
    for (let depth = same; depth < path.length; depth++) {
      const box = { frame: frame[path[depth]!]!, depth, startMs: timeMs, endMs, samples: 1 };
      boxes.push(box);
      open.push(box);
    }
    rows = Math.max(rows, path.length);
  }
  return { boxes, rows };
}

/** Nodes from the outermost frame on; the root and the process are in the title. */
function pathOf(parent: readonly number[], node: number): number[] {
  const path: number[] = [];
  for (let at = node; at !== 0 && parent[at] !== 0; at = parent[at]!) path.push(at);
  return path.reverse();
}

/** The median; of one sample alone 10 ms. */
function usualDistance(times: readonly number[]): number {
  const distances = times
    .slice(1)
    .map((time, i) => time - times[i]!)
    .filter((ms) => ms > 0)
    .sort((a, b) => a - b);
  return distances[distances.length >> 1] ?? 10;
}

/** The box at a moment and a depth, if any. */
export function boxAt({ boxes }: Chart, timeMs: number, depth: number): ChartBox | undefined {
  return boxes.find((box) => box.depth === depth && box.startMs <= timeMs && timeMs < box.endMs);
}

/** Where an arrow key leads from a box: the neighbour of its row, its caller, or what it called first. */
export function moveBox({ boxes }: Chart, box: ChartBox | undefined, key: string): ChartBox | undefined {
  if (box === undefined) return key.startsWith('Arrow') ? boxes[0] : undefined;
  const row = boxes.filter(({ depth }) => depth === box.depth);
  switch (key) {
    case 'ArrowLeft':
      return row[Math.max(0, row.indexOf(box) - 1)];
    case 'ArrowRight':
      return row[Math.min(row.length - 1, row.indexOf(box) + 1)];
    case 'ArrowUp':
      return boxes.find((each) => each.depth === box.depth - 1 && each.endMs > box.startMs) ?? box;
    case 'ArrowDown':
      return (
        boxes.find(
          (each) => each.depth === box.depth + 1 && each.startMs >= box.startMs && each.startMs < box.endMs,
        ) ?? box
      );
    default:
      return undefined;
  }
}
