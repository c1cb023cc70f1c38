import { LRUCache } from 'lru-cache';
import type { AgentStatus, ReasonCount } from '../api/types.ts';

/** Reasons quote what senders sent: a hostile one must not fill the memory with new ones. */
const MAX_REASONS = 64;
const MAX_REASON_LENGTH = 400;
const MAX_AGENTS = 256;
const MANY_REASONS = 'other reasons';

/** Counts by reason, bounded in reasons. */
export class ReasonCounter {
  readonly #counts = new Map<string, ReasonCount>();
  total = 0;

  add(reason: string, count: number, nowMs: number): void {
    this.total += count;
    let key = reason.slice(0, MAX_REASON_LENGTH);
    if (!this.#counts.has(key) && this.#counts.size >= MAX_REASONS) key = MANY_REASONS;
    const known = this.#counts.get(key) ?? { reason: key, count: 0, lastMs: 0 };
    known.count += count;
    known.lastMs = nowMs;
    this.#counts.set(key, known);
  }

  /** The most frequent first. */
  list(): ReasonCount[] {
    return [...this.#counts.values()].sort((a, b) => b.count - a.count);
  }
}

/** What has arrived, from whom, and what became of it, since the start. */
export class ReceiverStats {
  acceptedRequests = 0;
  /** Requests that were stored before, and not again. */
  repeatedRequests = 0;
  storedSamples = 0;
  /** Whole requests. */
  readonly refusals = new ReasonCounter();
  /** Single samples. */
  readonly rejections = new ReasonCounter();
  readonly #agents = new LRUCache<string, AgentStatus>({ max: MAX_AGENTS });

  get receivedSamples(): number {
    return this.storedSamples + this.rejections.total;
  }

  /** A request without samples names no host: it is a sign of life of whoever sent from there last. */
  noteAgent(peer: string, host: string, samples: number, nowMs: number): void {
    const known =
      samples === 0 && host === '' ? this.agents().find((agent) => agent.peer === peer) : undefined;
    const agent = known ?? this.#agent(peer, host);
    agent.lastMs = nowMs;
    agent.samples += samples;
    if (samples > 0) agent.lastSamplesMs = nowMs;
  }

  #agent(peer: string, host: string): AgentStatus {
    const key = `${peer} ${host}`;
    let agent = this.#agents.get(key);
    if (agent === undefined) {
      agent = { peer, host, lastMs: 0, lastSamplesMs: undefined, samples: 0 };
      this.#agents.set(key, agent);
    }
    return agent;
  }

  /** The latest first. */
  agents(): AgentStatus[] {
    return [...this.#agents.values()].sort((a, b) => b.lastMs - a.lastMs);
  }
}
