/**
 * Pushes the agent's own counters as OTLP metrics to where its profiles go. Values are cumulative, so a push
 * that fails costs nothing but its moment: the next one says it all again.
 */
import { hostname } from 'node:os';
import { encodeCounters } from '../../common/profile/otlp/otlp-metrics.ts';
import type { ConnectionOptions } from '../../otlp-client/grpc-client.ts';
import type { Failure, SenderLog } from '../../otlp-client/link-log.ts';
import { makeSignalClient, type SignalClient } from '../../otlp-client/signal-client.ts';
import { readScope } from './scope.ts';

const PREFIX = 'everyframe.agent.';
const INTERVAL_MS = 60_000;
const DEADLINE_MS = 5000;
/** Whoever has just started it looks at what it is learning. */
const FIRST_PUSH_MS = 1000;
/** At stop the last values get that long. */
const STOP_DEADLINE_MS = 500;
/** Numbers that also fall, by the end of their names. */
const GAUGE =
  /(?:^|\.)(?:queueBytes|queueEntries|samplesQueued|rssBytes|budgetBytes|usedBytes|idleKept|idleKeptBytes|maxDelayMs|learning|approximate)$|^tables\.(?:bytes|count)$|^threads\.threads$/;
export const isGauge = (name: string): boolean => GAUGE.test(name);

export class SelfMetrics {
  readonly #client: SignalClient;
  readonly #counters: () => Record<string, number>;
  readonly #log: SenderLog;
  readonly #timer: NodeJS.Timeout;
  readonly #firstTimer: NodeJS.Timeout;
  readonly #startMs = Date.now();
  readonly #scope = readScope();
  #failedWith: string | undefined;
  #pushing: Promise<void> | undefined;

  /** Pushes every `intervalMs` until stopped. */
  constructor(
    connection: ConnectionOptions,
    counters: () => Record<string, number>,
    log: SenderLog,
    intervalMs = INTERVAL_MS,
  ) {
    this.#client = makeSignalClient(connection);
    this.#counters = counters;
    this.#log = log;
    this.#timer = setInterval(() => void this.#push(DEADLINE_MS), intervalMs);
    this.#timer.unref();
    this.#firstTimer = setTimeout(() => void this.#push(DEADLINE_MS), Math.min(FIRST_PUSH_MS, intervalMs));
    this.#firstTimer.unref();
  }

  /** Pushes the last values and closes the connection; takes at most about a second. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    clearTimeout(this.#firstTimer);
    this.#client.cancel();
    await this.#pushing;
    await this.#push(STOP_DEADLINE_MS);
    this.#client.close();
  }

  /** One push at a time: joins the one under way. Never rejects. */
  #push(deadlineMs: number): Promise<void> {
    this.#pushing ??= this.#pushOnce(deadlineMs)
      .catch((error: unknown) => this.#noteResult({ code: 'not made', message: String(error) }))
      .finally(() => {
        this.#pushing = undefined;
      });
    return this.#pushing;
  }

  async #pushOnce(deadlineMs: number): Promise<void> {
    const report = {
      resource: {
        'service.name': `${this.#scope.scopeName}-agent`,
        'service.version': this.#scope.scopeVersion,
        'host.name': hostname(),
      },
      startMs: this.#startMs,
      timeMs: Date.now(),
      counters: Object.fromEntries(
        Object.entries(this.#counters()).map(([name, value]) => [PREFIX + name, value]),
      ),
    };
    const bytes = encodeCounters(report, this.#scope, isGauge);
    const result = await this.#client.push(bytes, deadlineMs);
    // Cancelled by stop(), which pushes anew.
    if (result !== 'cancelled') this.#noteResult(result);
  }

  #noteResult(failure: Failure | null): void {
    if (failure?.code === this.#failedWith) return;
    this.#failedWith = failure?.code;
    if (failure) {
      this.#log.warn(
        `the agent's own metrics (--self-metrics) don't arrive (${failure.code}: ${failure.message}): they are pushed again every minute`,
      );
    } else this.#log.info("the agent's own metrics arrive again");
  }
}
