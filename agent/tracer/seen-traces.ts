import { EF_SEEN_SETS, EF_SEEN_WAYS, SEEN_SET } from '../records/records.gen.ts';

/** Bytes of BPF's map of traces that it need not send. */
export const SEEN_BYTES = EF_SEEN_SETS * SEEN_SET.bytes;

const NUMBERS_A_SET = SEEN_SET.bytes / 4;

/**
 * BPF's map of traces that it need not send, as memory that both write to. A machine with many CPUs evicts thousands of
 * traces a second, for which two system calls each would be a tenth of what the agent does.
 */
export class SeenTraces {
  /** Each hash as its low and its high half. */
  readonly #u32Pairs: Uint32Array;

  /** `memory` has {@link SEEN_BYTES}. */
  constructor(memory: ArrayBuffer) {
    this.#u32Pairs = new Uint32Array(memory);
  }

  /**
   * Takes a trace out: BPF sends it when it next meets it. BPF may put another trace in its place at the same moment; that
   * one is then sent once more.
   */
  forget(low: number, high: number): void {
    const set = (low & (EF_SEEN_SETS - 1)) * NUMBERS_A_SET + SEEN_SET.hashes / 4;
    for (let at = set; at < set + EF_SEEN_WAYS * 2; at += 2) {
      if (this.#u32Pairs[at] !== low || this.#u32Pairs[at + 1] !== high) continue;
      this.#u32Pairs[at] = 0;
      this.#u32Pairs[at + 1] = 0;
    }
  }
}
