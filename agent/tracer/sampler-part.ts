/** What is part of the sampler only where it is needed: a runtime, or what reads thread contexts. */
import { EF_PART_THREAD_CONTEXTS } from '../records/records.gen.ts';

/** A RuntimePlugin is one. */
export interface SamplerPart {
  /** Its bit in ef_config.runtimes. */
  readonly id: number;
  readonly name: string;
  /** The BPF map that comes with it. */
  readonly map: string;
}

/** ebpf/thread-context/read.h. */
export const THREAD_CONTEXTS: SamplerPart = {
  id: EF_PART_THREAD_CONTEXTS,
  name: 'contexts',
  map: 'thread_contexts',
};

/** What is missing without it, for people. */
export const missingWithout = (part: SamplerPart): string =>
  part === THREAD_CONTEXTS ? 'traces, spans and labels of thread contexts' : `frames of ${part.name}`;
