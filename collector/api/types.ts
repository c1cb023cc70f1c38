/** JSON that the page and the query API exchange. */

import type { Leaves, TreeColumns, TypeAnswer } from '../../common/flame/tree-answer.ts';
import type { FunctionChange, FunctionCount } from '../query/functions.ts';
import type { LaneThread } from '../query/lanes.ts';
import type { Quality } from '../query/quality.ts';
import type { LineCount } from '../query/source-lines.ts';
import type { ThreadCount } from '../query/threads.ts';
import type { SourceText } from '../source/source-files.ts';
import type { StatusResponse } from '../status/status.ts';
import type { TakenSymbols } from '../symbols/symbol-intake.ts';

/** `GET /api/v1/types` */
export interface TypesAnswer {
  fromMs: number;
  toMs: number;
  /** CPU samples first. `samples`: how many there are; `total`: what they come to. */
  types: (TypeAnswer & { samples: number; total: number })[];
}

/** `POST /api/v1/symbols` */
export interface SymbolsResult extends TakenSymbols {
  fileName: string;
}

/** Every answer with a status of 400 or more. */
export interface ErrorResponse {
  error: string;
}

/** `GET /api/v1/lanes` */
export interface LanesAnswer {
  fromMs: number;
  toMs: number;
  steps: number;
  states: string[];
  threadCount: number;
  threads: LaneThread[];
}

/** `GET /api/v1/timeline` */
export interface TimelineAnswer {
  fromMs: number;
  toMs: number;
  type: TypeAnswer;
  steps: number;
  samples: number;
  cpuNanos: number;
  /** CPU time of each step: steps may have been sampled at different rates. */
  stepNanos: number[];
  groupCount: number;
  groups: { value: string; samples: number; counts: number[] }[];
  other: number[];
}

/** `GET /api/v1/labels` */
export interface LabelsAnswer {
  /** `trace_id` and `span_id` only where samples of the time have any. */
  labels: string[];
  /** Names of other attributes that samples of the time have. */
  attributes: string[];
}

/** `GET /api/v1/values` */
export interface ValuesAnswer {
  type: TypeAnswer;
  /** Sum over all values, whatever text was asked for. */
  samples: number;
  valueCount: number;
  values: { value: string; samples: number; processes?: number }[];
}

/** Totals that every counted answer comes with. */
export interface Basis {
  fromMs: number;
  toMs: number;
  type: TypeAnswer;
  samples: number;
  allSamples: number;
  cpuNanos: number;
  cpus: number;
}

/** `GET /api/v1/top` */
export interface TopAnswer extends Basis {
  functionCount: number;
  functions: FunctionCount[];
}

/** `GET /api/v1/callers` */
export interface CallersAnswer extends Basis {
  function: string;
  functionSamples: number;
  callers: TreeColumns;
  callees: TreeColumns;
}

/** `GET /api/v1/diff` */
export interface DiffAnswer {
  base: Basis;
  now: Basis;
  functionCount: number;
  functions: FunctionChange[];
}

/** `GET /api/v1/difftree` */
export interface DiffTreeAnswer extends TreeColumns {
  base: Basis;
  now: Basis;
  nodes: TreeColumns['nodes'] & { baseSelf: number[] };
  leaves: Leaves;
  baseLeaves: Leaves;
}

/** `GET /api/v1/health` */
export interface HealthAnswer extends Basis {
  quality: Quality;
  status: StatusResponse;
}

/** `GET /api/v1/threads` */
export interface ThreadsAnswer {
  type: TypeAnswer;
  threadCount: number;
  threads: ThreadCount[];
}

/** `GET /api/v1/samples` */
export interface SamplesAnswer {
  /** Given: each row is the most frequent stack of a step of so long, and its count all events of it. */
  stepMs?: number;
  fromMs: number;
  toMs: number;
  type: TypeAnswer;
  samples: number;
  returned: number;
  /** Columns over the samples; times in milliseconds since the Unix epoch. */
  times: number[];
  nodes: number[];
  threads: number[];
  cpus: number[];
  counts: number[];
  threadTable: { process: string; pid: number; thread: string; tid: number; host: string }[];
  stackTable: TreeColumns;
}

/** `GET /api/v1/source` */
export interface SourceAnswer {
  fromMs: number;
  toMs: number;
  type: TypeAnswer;
  samples: number;
  allSamples: number;
  /** As frames name it. */
  file: string;
  /** Events whose stack holds a frame of it. */
  fileSamples: number;
  /** The first event that passed the filter was before. */
  firstMs: number;
  /** The line to look at, 0 if none has events. */
  line: number;
  /** Lines with events, in their order. */
  counts: LineCount[];
  /** Why there is no text, '' if there is. */
  problem: string;
  text?: SourceText;
}

/** `GET /api/v1/heatmap` */
export interface HeatmapAnswer {
  fromMs: number;
  toMs: number;
  type: TypeAnswer;
  columns: number;
  rows: number;
  /** Column by column. */
  cells: number[];
  /** That samples of the time came from. */
  cpus: number;
}
