import type { SampleFilter, Store, TimeRange, Window } from '../store/store.ts';
import { buildFlameTree, type FlameTree } from './flame-tree.ts';
import { groupProcesses, type ProcessGroup } from './process-groups.ts';
import { readProcesses, readWindow } from './read.ts';

export type RangeName = '60s' | '5m' | '15m' | 'all';

const RANGE_MS = { '60s': 60_000, '5m': 300_000, '15m': 900_000 } as const;
export const RANGE_NAMES: readonly string[] = [...Object.keys(RANGE_MS), 'all'];

const TIMELINE_STEPS = 120;

export interface FlameGraph extends Omit<Window, 'parts'> {
  range: TimeRange;
  tree: FlameTree;
}

/** Everything the page asks, above whatever store there is. */
export class Queries {
  readonly #store: Store;
  readonly #now: () => number;

  constructor(store: Store, now: () => number) {
    this.#store = store;
    this.#now = now;
  }

  async flameGraph(rangeName: RangeName, process: string | undefined): Promise<FlameGraph> {
    const range = this.#range(rangeName);
    const where =
      process === undefined ? [] : [{ key: 'process', operator: '=' as const, values: [process] }];
    const filter: SampleFilter = { ...range, where };
    const { parts, ...window } = await readWindow(this.#store, filter, TIMELINE_STEPS);
    return { ...window, range, tree: buildFlameTree(parts) };
  }

  async processes(rangeName: RangeName): Promise<ProcessGroup[]> {
    return groupProcesses(await readProcesses(this.#store, { ...this.#range(rangeName), where: [] }));
  }

  /** The range, widened to whole timeline steps: a live picture then moves by whole steps, without flicker. */
  #range(name: RangeName): TimeRange {
    const nowMs = this.#now();
    if (name !== 'all') {
      const stepMs = RANGE_MS[name] / TIMELINE_STEPS;
      const toMs = Math.ceil((nowMs + 1) / stepMs) * stepMs;
      return { fromMs: toMs - RANGE_MS[name], toMs };
    }
    const { oldestMs = nowMs - RANGE_MS['60s'], newestMs = nowMs } = this.#store.stats();
    const endMs = Math.max(nowMs, newestMs) + 1;
    // The next multiple of 0.5 s: a minute or less has the steps of the last minute.
    const stepMs = Math.ceil((endMs - oldestMs) / (TIMELINE_STEPS - 1) / 500) * 500;
    const toMs = Math.ceil(endMs / stepMs) * stepMs;
    return { fromMs: toMs - stepMs * TIMELINE_STEPS, toMs };
  }
}
