/** What the page and the query API exchange, as JSON. */
import type { Leaves, TreeColumns, TypeAnswer } from '../../common/flame/tree-answer.ts';
import type { FunctionChange, FunctionCount } from '../query/functions.ts';
import type { Quality } from '../query/quality.ts';
import type { LineCount } from '../query/source-lines.ts';
import type { ThreadCount } from '../query/threads.ts';
import type { SourceText } from '../source/source-files.ts';
import type { StoreStats } from '../store/store.ts';
import type { TakenSymbols } from '../symbols/symbol-intake.ts';

/** `GET /api/v1/types` */
export interface TypesAnswer {
  fromMs: number;
  toMs: number;
  /** CPU samples first. `samples`: how many there are; `total`: what they come to. */
  types: (TypeAnswer & { samples: number; total: number })[];
}

/** `POST /api/v1/import` */
export interface ImportResult {
  fileName: string;
  /** Events that were stored. */
  samples: number;
  rejected: { reason: string; count: number }[];
  /** Times of what was in the file, milliseconds since the Unix epoch; `toMs` not included. */
  fromMs: number;
  toMs: number;
  /** The same file was imported before, and is not stored again. */
  repeated: boolean;
}

/** `POST /api/v1/symbols` */
export interface SymbolsResult extends TakenSymbols {
  fileName: string;
}

export interface ReasonCount {
  reason: string;
  count: number;
  lastMs: number;
}

export interface AgentStatus {
  /** IP address that it sends from. */
  peer: string;
  /** Its `host.name`, '' if it sent none. */
  host: string;
  lastMs: number;
  /** When it last sent a sample; undefined if it never did. */
  lastSamplesMs: number | undefined;
  samples: number;
  /** Over the last one to two minutes. */
  samplesPerSecond: number;
  /** What it tells of itself with --self-metrics: its version, its counters by name, and their time since its start. */
  version?: string;
  counters?: Record<string, number>;
  countersSpanMs?: number;
}

/** What became of what was passed on to another receiver, since the start. */
export interface ForwardStatus {
  /** `host:port` */
  to: string;
  /** received = sent + waiting + lost */
  samples: { received: number; sent: number; waiting: number; lost: number };
  /** Why samples were lost; only those reasons that happened. */
  losses: { reason: string; count: number }[];
  requests: { sent: number; retried: number; waiting: number; waitingBytes: number };
  /** Agents' reports of their own counters. */
  counterReports: { sent: number; lost: number };
}

/** Bytes of requests in memory; `refused`: those for which there was no room. */
export interface BudgetStats {
  maxBytes: number;
  bytes: number;
  /** Most that was held at a time. */
  peakBytes: number;
  refused: number;
}

/** Of all servers. */
export interface GateStats {
  connections: number;
  maxConnections: number;
  /** Cut: too many connections, or no request was admitted in time. */
  cut: number;
  /** That the system could not accept, such as for lack of descriptors. */
  failedAccepts: number;
}

/** The agent beside a collector, where `everyframe run` started both and starts the agent again when it dies. */
export interface WatchedAgent {
  /** `waiting`: it died, and nothing is sampled until `nextTryMs`. */
  state: 'running' | 'waiting';
  restarts: number;
  /** The last start; times are Unix milliseconds. */
  startedMs: number;
  /** Once it died. One of both is null. */
  lastExit?: { code: number | null; signal: string | null; atMs: number };
  nextTryMs?: number;
}

/** `GET /api/v1/status` */
export interface StatusResponse {
  nowMs: number;
  startedMs: number;
  listen: { grpc: string; http: string };
  /** `repeated`: stored before, and not again. */
  requests: { accepted: number; refused: number; repeated: number };
  /** Why whole requests were refused, and single samples; the most frequent first. */
  refusals: ReasonCount[];
  rejections: ReasonCount[];
  samples: { received: number; stored: number; rejected: number };
  agents: AgentStatus[];
  /** `problem`: why what arrives can't be written now. */
  store: StoreStats & { problem?: string };
  /** Requests that arrive or are being stored, over all senders. */
  requestMemory?: BudgetStats;
  connections?: GateStats;
  /** With --forward-to. */
  forward?: ForwardStatus;
  /** Only of a collector that `everyframe run` started. */
  agent?: WatchedAgent;
}

/** Every answer with a status of 400 or more. */
export interface ErrorResponse {
  error: string;
}

/** `GET /api/v1/timeline` */
export interface TimelineAnswer {
  fromMs: number;
  toMs: number;
  type: TypeAnswer;
  steps: number;
  samples: number;
  cpuNanos: number;
  groupCount: number;
  groups: { value: string; samples: number; counts: number[] }[];
  other: number[];
}

/** `GET /api/v1/labels` */
export interface LabelsAnswer {
  labels: string[];
  /** Names of other attributes that samples of the time have. */
  attributes: string[];
}

/** `GET /api/v1/values` */
export interface ValuesAnswer {
  type: TypeAnswer;
  /** Of all values, whatever text was asked for. */
  samples: number;
  valueCount: number;
  values: { value: string; samples: number; processes?: number }[];
}

/** What every counted answer stands on. */
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
}
