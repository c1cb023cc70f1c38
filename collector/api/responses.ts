import type { FrameKind } from '../../common/flame/frame-kind.ts';
import type { FlameGraphResponse, TreeColumns } from '../../common/flame/tree-answer.ts';
import type { Forwarder } from '../forward/forwarder.ts';
import type { ReceiverStats } from '../ingest/receiver-stats.ts';
import type { ByteBudget } from '../net/byte-budget.ts';
import type { ConnectionGate } from '../net/connection-gate.ts';
import type { FlameTree } from '../query/flame/flame-tree.ts';
import type { FlameGraph } from '../query/flame/profile-graph.ts';
import type { StatusResponse, WatchedAgent } from '../status/status.ts';
import type { Store } from '../store/store.ts';
import { storedType } from '../store/stored-type.ts';
import { describeTypes } from './shown-type.ts';

export function flameGraphResponse({ type, range, tree, leaves, ...window }: FlameGraph): FlameGraphResponse {
  return {
    fromMs: range.fromMs,
    toMs: range.toMs,
    type: describeTypes([storedType(type)])[0]!.answer,
    samples: window.samples,
    allSamples: window.allSamples,
    cpuNanos: window.cpuNanos,
    cpus: window.cpus,
    timeline: Array.from(window.timeline),
    ...flameColumns(tree),
    leaves,
  };
}

/** Columns of small integers: a tenth of the bytes of an object a node, and faster to parse. */
export function flameColumns(tree: FlameTree): TreeColumns {
  const strings = new Interner<string>();
  const kinds = new Interner<FrameKind>();
  strings.id('');
  return {
    frames: {
      name: tree.frames.map((frame) => strings.id(frame.name)),
      file: tree.frames.map((frame) => strings.id(frame.file)),
      mapping: tree.frames.map((frame) => strings.id(frame.mapping)),
      kind: tree.frames.map((frame) => kinds.id(frame.kind)),
    },
    strings: strings.values,
    kinds: kinds.values,
    nodes: {
      parent: Array.from(tree.parents),
      frame: Array.from(tree.nodeFrames),
      self: Array.from(tree.selfCounts),
    },
    folded: { nodes: tree.foldedNodes, samples: tree.foldedSamples },
  };
}

class Interner<T> {
  readonly values: T[] = [];
  readonly #ids = new Map<T, number>();

  id(value: T): number {
    let id = this.#ids.get(value);
    if (id === undefined) {
      id = this.values.push(value) - 1;
      this.#ids.set(value, id);
    }
    return id;
  }
}

export interface StatusSources {
  /** Where there are several. */
  tenant?: string;
  stats: ReceiverStats;
  forwarder?: Pick<Forwarder, 'status'> | undefined;
  store: Store;
  listen: { grpc: string; http: string };
  startedMs: number;
  traceUrl?: string | undefined;
  budget?: ByteBudget | undefined;
  gate?: ConnectionGate | undefined;
  agent?: (() => WatchedAgent | undefined) | undefined;
}

export function statusResponse(
  { tenant, stats, store, listen, startedMs, traceUrl, forwarder, budget, gate, agent }: StatusSources,
  nowMs: number,
): StatusResponse {
  const watched = agent?.();
  return {
    ...(tenant !== undefined && { tenant }),
    nowMs,
    startedMs,
    listen,
    ...(traceUrl !== undefined && { traceUrl }),
    requests: {
      accepted: stats.acceptedRequests,
      refused: stats.refusals.total,
      repeated: stats.repeatedRequests,
    },
    refusals: stats.refusals.list(),
    rejections: stats.rejections.list(),
    samples: {
      received: stats.receivedSamples,
      stored: stats.storedSamples,
      rejected: stats.rejections.total,
    },
    agents: stats.agents(nowMs),
    store: { ...store.stats(), ...(store.problem !== undefined && { problem: store.problem }) },
    ...(budget && { requestMemory: budget.stats() }),
    ...(gate && { connections: gate.stats() }),
    ...(forwarder && { forward: forwarder.status() }),
    ...(watched && { agent: watched }),
  };
}
