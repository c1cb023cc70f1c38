/** The frames of traces, which stay with the traces for as long as they mean the same. */
import type { TraceId } from '../../common/base/brand.ts';
import { runInSlices } from '../slices.ts';
import type { Frame, FrameResolver } from './frame-resolver.ts';
import type { TraceStore } from './trace-store.ts';

/** Traces of an interval. */
export interface Traces {
  readonly size: number;
  traceOf(i: number): TraceId;
}

/** A generation that no resolver has: such numbers hold until the next interval. */
const FOR_NOW = 0;

export class Stacks {
  readonly #store: TraceStore;
  readonly #frames: FrameResolver;

  constructor(store: TraceStore, frames: FrameResolver) {
    this.#store = store;
    this.#frames = frames;
  }

  /** Frames have numbers below. */
  get frameCount(): number {
    return this.#frames.frameCount;
  }

  frameAt(number: number): Frame {
    return this.#frames.frameAt(number);
  }

  /** What a process has the names of is asked for now: it may be about to end. */
  *resolveNow(id: TraceId): Generator<void, void> {
    const { numbers, isLasting } = yield* this.#frames.framesOf(this.#store.read(id));
    if (isLasting) this.#store.setFrames(id, numbers, this.#frames.generation);
  }

  /** All traces have their frames then, and these their names. Nothing is forgotten meanwhile, nor until `use` is done. */
  async resolve<T>(traces: Traces, use: () => Promise<T>): Promise<T> {
    this.#frames.beginStacks();
    try {
      await runInSlices(this.#resolveAll(traces));
      await this.#frames.nameFrames();
      return await use();
    } finally {
      this.#frames.endStacks();
    }
  }

  /** How many frames; after {@link resolve}. */
  depthOf(id: TraceId): number {
    return this.#store.frameCount(id);
  }

  /** Fills `into` with what `map` makes of the numbers of the frames, leaf first. */
  mapFrames(id: TraceId, into: Uint32Array, map: (frame: number) => number): void {
    this.#store.mapFrames(id, into, map);
  }

  *#resolveAll(traces: Traces): Generator<void, void> {
    const { generation } = this.#frames;
    for (let i = 0; i < traces.size; i++) {
      const id = traces.traceOf(i);
      if (this.#store.hasFrames(id, generation)) continue;
      const { numbers, isLasting } = yield* this.#frames.framesOf(this.#store.read(id));
      this.#store.setFrames(id, numbers, isLasting ? generation : FOR_NOW);
      yield;
    }
  }
}
