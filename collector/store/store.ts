import type { FrameType, Profile } from '../../common/profile/profile.ts';

/** What a box of the flame graph stands for: a frame of some type, or one of the graph's own levels. */
export type FrameKind = Exclude<FrameType, ''> | 'unknown' | 'process' | 'root' | 'other';

/** One function as the flame graph tells functions apart: addresses and lines within it are merged. */
export interface Frame {
  name: string;
  /** Source file, '' if unknown. */
  file: string;
  /** Path or name of the binary, '' if unknown. */
  mapping: string;
  kind: FrameKind;
}

/** Milliseconds since the Unix epoch: `fromMs` included, `toMs` not. */
export interface TimeRange {
  fromMs: number;
  toMs: number;
}

export interface SampleFilter extends TimeRange {
  /** Only processes of this name; undefined: all. */
  process: string | undefined;
}

/**
 * Stacks as a tree, root first, with how often each was seen. Node 0 is the root, its children stand for
 * process names (kind `process`), below them are the frames, outermost first. A parent's id is less than
 * those of its children, so one sweep in descending order sums subtrees.
 */
export interface StackCounts {
  frames: readonly Frame[];
  /** Parent of each node; the root's is 0. */
  parents: Uint32Array;
  /** Index into `frames` of each node; meaningless for the root. */
  nodeFrames: Uint32Array;
  /** Events whose stack ends at the node. */
  selfCounts: Float64Array;
}

/** What happened in a time range. */
export interface Window {
  /** The parts overlap: the same stack may be in several. */
  parts: StackCounts[];
  /** Events that passed the filter, and all in the time range. */
  samples: number;
  allSamples: number;
  /** CPU time that the filtered events stand for: each counts as its profile's period. */
  cpuNanos: number;
  /** Logical CPUs that any event of the time range named, over all hosts. */
  cpus: number;
  /** Filtered events in each of the equal steps that the range was cut into. */
  timeline: Float64Array;
}

export interface ProcessCount {
  name: string;
  pid: number;
  path: string;
  containerId: string;
  samples: number;
  threads: number;
}

export interface AppendResult {
  stored: number;
  /** Events that could not be stored, by reason. */
  rejected: Map<string, number>;
}

export interface StoreStats {
  /** Events in the store now. */
  samples: number;
  bytes: number;
  maxBytes: number;
  maxAgeMs: number;
  /** Time of the oldest segment's start, and of the newest event; undefined while empty. */
  oldestMs: number | undefined;
  newestMs: number | undefined;
  /** Events that left the store: to stay within its memory, and because they grew too old. */
  droppedForMemory: number;
  droppedForAge: number;
}

/** Where samples are kept. Reads are asynchronous because a lasting store is another process or a database. */
export interface Store {
  append(profile: Profile): AppendResult;
  readWindow(filter: SampleFilter, steps: number): Promise<Window>;
  readProcesses(range: TimeRange): Promise<ProcessCount[]>;
  stats(): StoreStats;
}
