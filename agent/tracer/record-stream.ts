/**
 * Records out of the ring buffer, taken in slices: most take microseconds, but a new trace of hundreds of interpreted
 * frames is read out of its process, which takes a tenth of a second.
 */

import { nextTurn } from '../../common/base/slices.ts';
import type { NativeRing } from '../base/native.ts';

/** Work that a record leaves; between two steps the event loop may have its turn. */
export type Steps = Generator<void, unknown>;

/** Receives records in the order of the ring buffer. */
export interface RecordConsumer {
  /** Records were taken from the ring buffer: what was read of their processes before may be older than they are. */
  beginBatch?(): void;
  /** Its type is the u16 at `at`. The next record waits for the steps. Neither they nor this may throw. */
  onRecord(buffer: Buffer, at: number, size: number): Steps | undefined;
  /** All of them were taken. The next batch waits for the steps, which do not throw. */
  endBatch?(): Steps | undefined;
  /** The ring buffer was empty. */
  drained?(): void;
}

const BATCH_BYTES = 256 * 1024;
/** After that long the event loop gets its turn. */
const SLICE_MS = 10;

export class RecordStream {
  readonly #ring: Pick<NativeRing, 'drain'>;
  readonly #consumer: RecordConsumer;
  readonly #sliceMs: number;
  readonly #batch = Buffer.alloc(BATCH_BYTES);
  /** Start of the part of the batch that is not consumed yet. */
  #at = 0;
  #used = 0;
  /** Or nobody wants to know. */
  #hasEnded = true;
  /** The ring buffer was empty behind the batch. */
  #isLast = false;
  #steps: Steps | undefined;
  #fills = 0;

  /** Now, or in the next turn. */
  #isDraining = false;
  #drainingSinceMs = 0;

  constructor(ring: Pick<NativeRing, 'drain'>, consumer: RecordConsumer, sliceMs = SLICE_MS) {
    this.#ring = ring;
    this.#consumer = consumer;
    this.#sliceMs = sliceMs;
  }

  /** One slice now, the others in the next turns: none more, however often BPF wakes the agent in this one. */
  drain(): void {
    if (this.#isDraining) return;
    this.#isDraining = true;
    if (this.#drainingSinceMs === 0) this.#drainingSinceMs = performance.now();
    let more = false;
    try {
      more = this.#takeSlice();
    } finally {
      this.#isDraining = more;
    }
    if (more) setImmediate(() => this.#drainNext());
    else {
      this.#drainingSinceMs = 0;
      this.#consumer.drained?.();
    }
  }

  /** How long it has been taking records without finding an end of them, milliseconds; 0: it found it. */
  get behindMs(): number {
    return this.#drainingSinceMs === 0 ? 0 : performance.now() - this.#drainingSinceMs;
  }

  /** Takes all that was there when it was called. False: that took longer than `maxMs`, the rest comes with later drains. */
  async catchUp(maxMs: number): Promise<boolean> {
    const end = performance.now() + maxMs;
    // the batch under way may be older than records that wait
    const fills = this.#fills;
    while (this.#takeSlice() || this.#fills === fills) {
      if (performance.now() >= end) return false;
      await nextTurn();
    }
    return true;
  }

  #drainNext(): void {
    this.#isDraining = false;
    this.drain();
  }

  /** One record or step at least. Are there more? */
  #takeSlice(): boolean {
    const end = performance.now() + this.#sliceMs;
    do {
      if (this.#steps) this.#step(this.#steps);
      else if (this.#at < this.#used) this.#next();
      else if (!this.#hasEnded) this.#end();
      else if (this.#isLast) {
        this.#isLast = false;
        return false;
      } else this.#fill();
    } while (performance.now() < end);
    return true;
  }

  #step(steps: Steps): void {
    if (steps.next().done) this.#steps = undefined;
  }

  #next(): void {
    const at = this.#at;
    const size = this.#batch.readUInt32LE(at);
    this.#at = at + 8 + ((size + 7) & ~7);
    this.#steps = this.#consumer.onRecord(this.#batch, at + 8, size);
  }

  #end(): void {
    this.#hasEnded = true;
    this.#steps = this.#consumer.endBatch?.();
  }

  #fill(): void {
    this.#used = this.#ring.drain(this.#batch);
    this.#fills++;
    this.#at = 0;
    this.#hasEnded = !this.#consumer.endBatch;
    this.#isLast = this.#used <= BATCH_BYTES / 2;
    this.#consumer.beginBatch?.();
  }
}
