/** What a collector says of itself: each part counts its own. */
import type { StoreStats } from '../store/store.ts';

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
  /** What it says of itself with --self-metrics: its version, its counters by name, and their time since its start. */
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
  /** Whose samples these are, where the collector has tenants. */
  tenant?: string;
  nowMs: number;
  startedMs: number;
  listen: { grpc: string; http: string };
  /** Where traces are shown, with a place for the ID of one: --trace-url. */
  traceUrl?: string;
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

/** The whole process. */
export interface CollectorStatus {
  tenants: StatusResponse[];
  requestMemory: BudgetStats;
  connections: GateStats;
  /** Requests with no tenant's token; without tenants these are counted with all that is refused. */
  unauthenticated: number;
}
