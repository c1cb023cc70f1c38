/** The frames of traces, which stay with the traces for as long as they mean the same. */

import type { TraceId } from '../../common/base/brand.ts';
import { runInSlices } from '../../common/base/slices.ts';
import { OWN_VIEW } from '../processes/root-views.ts';
import type { ProcessIdentity } from '../records/records.ts';
import type { Frame } from './frame.ts';
import type { FrameResolver } from './frame-resolver.ts';
import type { TraceStore } from './trace-store.ts';

/** Traces of an interval, as processes had them. */
export interface Traces {
  readonly size: number;
  traceOf(i: number): TraceId;
  processOf(i: number): ProcessIdentity;
}

/** See RootViews. */
export type ViewOf = (process: ProcessIdentity) => number;

/** A generation that no resolver has: such numbers hold until the next interval. */
const FOR_NOW = 0;

export class Stacks {
  readonly #store: TraceStore;
  readonly #frames: FrameResolver;

  readonly #viewOf: ViewOf;
  /** Numbers of frames of traces that processes of several views have in this interval, by trace and view. */
  readonly #others = new Map<string, number[]>();

  constructor(store: TraceStore, frames: FrameResolver, viewOf: ViewOf = () => OWN_VIEW) {
    this.#store = store;
    this.#frames = frames;
    this.#viewOf = viewOf;
  }

  /** Frames have numbers below. */
  get frameCount(): number {
    return this.#frames.frameCount;
  }

  frameAt(number: number): Frame {
    return this.#frames.frameAt(number);
  }

  /** Traces of which processes have the names: they are asked for now, since they may be about to end. */
  *resolveNow(ids: readonly TraceId[]): Generator<void, void> {
    yield* this.#frames.nameAhead(ids.map((id) => this.#store.read(id)));
    for (const id of ids) {
      const trace = this.#store.read(id);
      const view = this.#viewOf(trace);
      const { numbers, isLasting } = yield* this.#frames.framesOf(trace, view);
      if (isLasting) this.#store.setFrames(id, numbers, this.#frames.generation, view);
    }
  }

  /** All traces have their frames then, and these their names. Nothing is forgotten meanwhile, nor until `use` is done. */
  async resolve<T>(traces: Traces, use: () => Promise<T>): Promise<T> {
    this.#frames.beginStacks();
    try {
      await runInSlices(this.#resolveAll(traces));
      await this.#frames.symbolizeFrames();
      return await use();
    } finally {
      this.#frames.endStacks();
    }
  }

  viewOf(process: ProcessIdentity): number {
    return this.#viewOf(process);
  }

  /** How many frames; after {@link resolve}. */
  depthOf(id: TraceId, view: number): number {
    return this.#other(id, view)?.length ?? this.#store.frameCount(id);
  }

  /** Fills `into` with what `map` makes of the numbers of the frames, leaf first. */
  mapFrames(id: TraceId, view: number, into: Uint32Array, map: (frame: number) => number): void {
    const other = this.#other(id, view);
    if (!other) this.#store.mapFrames(id, into, map);
    else for (let i = 0; i < into.length; i++) into[i] = map(other[i]!);
  }

  #other(id: TraceId, view: number): number[] | undefined {
    return this.#others.size === 0 ? undefined : this.#others.get(keyOf(id, view));
  }

  *#resolveAll(traces: Traces): Generator<void, void> {
    this.#others.clear();
    const { generation } = this.#frames;
    /** Traces whose frames hold for now only, and the view that they were named in. */
    const forNow = new Map<TraceId, number>();
    for (let i = 0; i < traces.size; i++) {
      const id = traces.traceOf(i);
      const view = this.#viewOf(traces.processOf(i));
      const known = this.#store.hasFrames(id, generation) ? this.#store.viewOf(id) : forNow.get(id);
      if (known === view || this.#other(id, view)) continue;
      const { numbers, isLasting } = yield* this.#frames.framesOf(this.#store.read(id), view);
      if (known !== undefined) this.#others.set(keyOf(id, view), numbers);
      else {
        this.#store.setFrames(id, numbers, isLasting ? generation : FOR_NOW, view);
        if (!isLasting) forNow.set(id, view);
      }
      yield;
    }
  }
}

const keyOf = (id: TraceId, view: number): string => `${id} ${view}`;
