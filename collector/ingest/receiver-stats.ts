import { LRUCache } from 'lru-cache';
import type { CounterReport } from '../../common/profile/otlp/counter-report.ts';
import type { AgentStatus, ReasonCount } from '../status/status.ts';

/** Reasons quote what senders sent: a hostile one must not fill the memory with new ones. */
const MAX_REASONS = 64;
const MAX_REASON_LENGTH = 400;
const MAX_AGENTS = 256;
/** How everyframe's agent names its own counters. */
const COUNTER_PREFIX = 'everyframe.agent.';
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

const RATE_MS = 60_000;

/** Events a second over the last one to two minutes, or since the first if that is less. */
class Rate {
  #startMs: number;
  #count = 0;
  #before = { startMs: 0, count: 0 };

  constructor(nowMs: number) {
    this.#startMs = nowMs;
    this.#before.startMs = nowMs;
  }

  add(count: number, nowMs: number): void {
    this.#turn(nowMs);
    this.#count += count;
  }

  perSecond(nowMs: number): number {
    this.#turn(nowMs);
    const ms = nowMs - this.#before.startMs;
    return ms <= 0 ? 0 : ((this.#before.count + this.#count) * 1000) / ms;
  }

  #turn(nowMs: number): void {
    if (nowMs - this.#startMs < RATE_MS) return;
    const isLong = nowMs - this.#startMs >= 2 * RATE_MS;
    this.#before = isLong
      ? { startMs: nowMs - RATE_MS, count: 0 }
      : { startMs: this.#startMs, count: this.#count };
    this.#startMs = nowMs;
    this.#count = 0;
  }
}

interface KnownAgent extends Omit<AgentStatus, 'samplesPerSecond'> {
  rate: Rate;
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
  readonly #agents = new LRUCache<string, KnownAgent>({ max: MAX_AGENTS });

  /** Counts what was refused before it was decoded. */
  refuse(reason: string, nowMs: number): void {
    this.refusals.add(reason, 1, nowMs);
  }

  get receivedSamples(): number {
    return this.storedSamples + this.rejections.total;
  }

  /** A request without samples names no host: it is a sign of life of whoever sent from there last. */
  noteAgent(peer: string, host: string, samples: number, nowMs: number): void {
    const known =
      samples === 0 && host === '' ? this.#known().find((agent) => agent.peer === peer) : undefined;
    const agent = known ?? this.#agent(peer, host, nowMs);
    agent.lastMs = nowMs;
    agent.samples += samples;
    if (samples > 0) agent.lastSamplesMs = nowMs;
    agent.rate.add(samples, nowMs);
  }

  /** What an agent counts itself; cumulative since its start. */
  noteCounters(peer: string, report: CounterReport, nowMs: number): void {
    const agent = this.#agent(peer, report.resource['host.name'] ?? '', nowMs);
    agent.lastMs = nowMs;
    agent.version = report.resource['service.version'] ?? '';
    agent.countersSpanMs = report.timeMs - report.startMs;
    agent.counters = Object.fromEntries(
      Object.entries(report.counters).flatMap(([name, value]) =>
        name.startsWith(COUNTER_PREFIX) ? [[name.slice(COUNTER_PREFIX.length), value]] : [],
      ),
    );
  }

  #agent(peer: string, host: string, nowMs: number): KnownAgent {
    const key = `${peer} ${host}`;
    let agent = this.#agents.get(key);
    if (agent === undefined) {
      const rate = new Rate(nowMs);
      agent = { peer, host, lastMs: 0, lastSamplesMs: undefined, samples: 0, rate };
      this.#agents.set(key, agent);
    }
    return agent;
  }

  /** The latest first. */
  agents(nowMs: number): AgentStatus[] {
    return this.#known().map(({ rate, ...agent }) => ({ ...agent, samplesPerSecond: rate.perSecond(nowMs) }));
  }

  #known(): KnownAgent[] {
    return [...this.#agents.values()].sort((a, b) => b.lastMs - a.lastMs);
  }
}
