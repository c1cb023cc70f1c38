import type { FrameKind } from '../../common/flame/frame-kind.ts';
import type { Matcher } from '../../common/profile/filters/filter.ts';
import type { ColumnProfile } from '../../common/profile/model/frame-columns.ts';
import type { Profile } from '../../common/profile/model/profile.ts';
import type { ProfileType } from '../../common/profile/model/profile-type.ts';
import type { PartLinks } from './part-links.ts';
import type { SeriesGroup } from './series.ts';
import type { SeriesTable } from './series-table.ts';

/** Requests that are remembered as stored: 27 minutes of 100 agents that send every 5 seconds. */
export const MAX_RECENT_REQUESTS = 32_768;
export const RECENT_REQUESTS_MS = 24 * 60 * 60_000;

/**
 * One function as the flame graph tells functions apart: addresses within it are merged. Stores keep its lines apart;
 * what merges stacks of several parts merges them too (see FrameTable).
 */
export interface Frame {
  name: string;
  /** Source file, '' if unknown. */
  file: string;
  /** Path or name of the binary, '' if unknown. */
  mapping: string;
  kind: FrameKind;
  /**
   * Native code without a name: see binaryOf; the name then ends in `+0x` and the ELF virtual address, that of the function's
   * begin where there is a line.
   */
  binary?: string;
  /**
   * Line of the source file that ran, or that called what is below; from 1, missing where it is not known. Of code without a
   * name, bytes from the function's begin, and 1.
   */
  line?: number;
}

/** Milliseconds since the Unix epoch: `fromMs` included, `toMs` not. */
export interface TimeRange {
  fromMs: number;
  toMs: number;
}

/** Samples of one type; none of two types are ever added up. */
export interface TypedRange extends TimeRange {
  /** Key of the type, see typeKey; CPU samples where it is missing. */
  type?: string | undefined;
}

export interface SampleFilter extends TypedRange {
  /** All must hold; none: everything. */
  where: readonly Matcher[];
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

/** Stacks without counts. */
export type Stacks = Omit<StackCounts, 'selfCounts'>;

/** The samples of a time range. */
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

export interface AppendResult {
  /** Samples: events of CPU time, and values of other types. */
  stored: number;
  /** Samples that could not be stored, by reason. */
  rejected: Map<string, number>;
}

export interface StoreStats {
  /** Samples in the store now, of all types. */
  samples: number;
  bytes: number;
  maxBytes: number;
  maxAgeMs: number;
  /** Time of the oldest segment's start, and of the newest event; undefined while empty. */
  oldestMs: number | undefined;
  newestMs: number | undefined;
  /** Samples that left the store: to stay within its memory, and because they grew too old. */
  droppedForMemory: number;
  droppedForAge: number;
}

export type Column = 'time' | 'node' | 'series' | 'group' | 'cpu' | 'link';

/** Masks hold 1 for each wanted id; a missing mask means every one. */
export interface RowQuery extends TimeRange {
  series: Uint8Array | undefined;
  /** Groups of series. */
  groups: Uint8Array | undefined;
  nodes: Uint8Array | undefined;
  cpus: Uint8Array | undefined;
  links: Uint8Array | undefined;
  /** The columns that the caller will read: rows that agree in these may come summed. */
  by: readonly Column[];
  /** Times may be rounded down to `fromMs` plus a multiple of this. */
  stepMs: number;
  /** Before that they are rounded down to a multiple of this since the Unix epoch. */
  resolutionMs: number;
  /** Weights are numbers of samples (see countOf) in place of values. */
  counts?: boolean;
  /** Given: rows do not come summed, and the earliest so many are all there; later ones may be missing. */
  limit?: number;
}

/** Rows in no order; columns that were not asked for may be missing. */
export interface Rows {
  length: number;
  /** Milliseconds since the part's start. */
  times: ArrayLike<number> | undefined;
  nodes: ArrayLike<number> | undefined;
  series: ArrayLike<number> | undefined;
  groups: ArrayLike<number> | undefined;
  /** Logical CPU, -1 if unknown. */
  cpus: ArrayLike<number> | undefined;
  /** Index into the part's links, 0 for none; undefined also where no sample of the part has one. */
  links: ArrayLike<number> | undefined;
  /** Value of a row in the unit of its part's type: events that it stands for, nanoseconds, bytes; undefined: one each. */
  weights: ArrayLike<number> | undefined;
}

/** The samples of a stretch of time and of one type, with the dictionaries that only they need. */
export interface SamplePart {
  readonly type: ProfileType;
  readonly startMs: number;
  readonly endMs: number;
  /** Labels that series share: enough to filter and to group by most labels. */
  readonly groups: readonly SeriesGroup[];
  /** As they are now: later samples may add to them. */
  series(): Promise<SeriesTable>;
  /** As they are now: later samples may add to them. */
  stacks(): Promise<Stacks>;
  /** The links of its samples, nearly always none; later samples may add to them. */
  links(): Promise<PartLinks>;
  rows(query: RowQuery): Promise<Rows>;
  /** How many samples there are in a range, whatever their values. */
  countSamples(range: TimeRange): Promise<number>;
  /** True if all its samples are known, without reading them, to be in the range. */
  isWithin?(range: TimeRange): boolean;
  /** Sums of all its stacks; undefined where none were made, or some of its samples are not in the range. */
  summed?(range: TimeRange): SummedStacks | undefined;
}

/** Boxes of very few events are not in it: see LEAST_EVENTS. */
export interface SummedStacks {
  /** Nodes of the part's `stacks()`. */
  nodes: number;
  /**
   * By function. Boxes of fewer events than `minimum`, but for those of processes, are "(other)" of the function above.
   * A function has the same index in all parts of a store.
   */
  read(minimum: number): Promise<StackCounts>;
  /** Exact; missing where an earlier version summed. */
  functions?(): Promise<SummedFunctions>;
}

/** For each function, or what else stacks are grouped by: events whose stack ends in it, and whose stack holds it. */
export interface Sums {
  self: Float64Array;
  total: Float64Array;
}

/** Events of each function in each process name, in columns of one length. */
export interface SummedFunctions {
  frames: readonly Frame[];
  /** Index into `frames`, as the functions. */
  processes: Uint32Array;
  functions: Uint32Array;
  /** A recursion counts once. */
  sums: Sums;
}

/** Samples of a query became too old while it was being answered: asked again, it is answered without them. */
export class PartDropped extends Error {
  override name = 'PartDropped';

  constructor() {
    super('samples of this time were dropped by the retention while they were read: ask again');
  }
}

/** The store can't be read now; it tries to mend that by itself. */
export class StoreUnavailable extends Error {
  override name = 'StoreUnavailable';
}

/** The database ended the query; the message says at which limit, and what to ask instead. */
export class TooMuchToRead extends Error {
  override name = 'TooMuchToRead';
}

/**
 * Where samples are kept. Every query is computed above it, from parts and rows, so that all stores answer alike.
 * Reads are asynchronous because a lasting store is a database.
 */
export interface Store {
  /** Why nothing can be taken now; undefined: it can. */
  readonly busy: string | undefined;
  /** Why what arrives can't be written now, though it is taken; undefined: it can. */
  readonly problem?: string | undefined;
  /** All that is appended and noted until the returned function is called is written together. */
  hold(): () => void;
  append(profile: Profile | ColumnProfile): AppendResult;
  /** Keeps what identifies a request together with its samples: after a crash both are there, or neither. */
  noteRequest(id: string): void;
  /**
   * Resolves when all that was appended and noted before is as safe as this store makes it.
   *
   * @throws Error when it could not be written; it is tried again
   */
  commit(): Promise<void>;
  /** Recent requests that an earlier process noted, the oldest first. */
  recentRequests(): readonly string[];
  /** The parts that overlap the range, the oldest first. */
  parts(range: TypedRange): Promise<SamplePart[]>;
  /** Types of the samples in parts that overlap the range, in no order. */
  types(range: TimeRange): Promise<ProfileType[]>;
  stats(): StoreStats;
  close(): Promise<void>;
}
