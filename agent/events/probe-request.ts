/** What a worker is asked for about the file of a probe, and its answer. */
import type { ArgumentPlace } from './event-field.ts';
import type { HiddenPython } from './python-allocator.ts';

export interface ProbeRequest {
  fd: number;
  /** Of the file, for those beside it and with its build ID: its symbols may have been split off. */
  path: string;
  /** Functions by name, a probe of the file's own, or what is known of allocators. */
  wanted:
    | { symbol: string; offset: number; isAtReturn: boolean }
    | { provider: string; name: string }
    | 'allocators';
}

/** Offsets in the file. */
export interface FoundProbe {
  offset: number;
  /** 0: there is none. */
  semaphore: number;
  /** Of the allocator's function. */
  name?: string;
  /** What it is called with. */
  arguments?: readonly ArgumentPlace[];
}

export interface ProbeAnswer {
  found: FoundProbe[];
  /** How many more there are. */
  leftOut: number;
  /** Where nothing was found: names that it may have meant. */
  similar: string[];
  /** It is there, but it is Go's, whose stacks move: what the kernel writes to them would be lost. */
  isMovedByGo?: boolean;
  /** It is a CPython whose own allocator no probe sees. */
  hiddenPython?: HiddenPython;
}

/** Places of one probe. */
export const MAX_FOUND = 256;

/** `count`: of all places. */
export const answerOf = (
  found: readonly FoundProbe[],
  similar: readonly string[],
  count = found.length,
): ProbeAnswer => {
  const probed = found.slice(0, MAX_FOUND);
  return { found: probed, leftOut: count - probed.length, similar: count === 0 ? [...similar] : [] };
};
