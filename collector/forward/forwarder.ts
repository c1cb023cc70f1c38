/**
 * Hand-off: passes on what arrived to another receiver, as it arrived, while the store keeps it too. A receiver that
 * is away or slow costs memory up to a bound, then the oldest requests; it never costs the collector's own senders.
 */

import { METRICS_EXPORT_PATH } from '../../common/profile/otlp/otlp-metrics.ts';
import { GrpcClient } from '../../otlp-client/grpc-client.ts';
import type { SenderLog } from '../../otlp-client/link-log.ts';
import { RequestSender, type SenderOptions, type SenderStats } from '../../otlp-client/request-sender.ts';
import type { ForwardStatus } from '../status/status.ts';

/** Agents tell their counters again and again: what is not passed on now is passed on with the next report. */
const MAX_COUNTER_CALLS = 16;
const COUNTERS_DEADLINE_MS = 5000;
/** At stop what waits gets that long; whoever runs a collector as a child waits 5 s for its end. */
const STOP_MS = 3000;

const LOSSES = {
  samplesDroppedOverflow: 'the receiver was away or slow for too long: the oldest went',
  samplesRefused: 'the receiver refused the whole request',
  samplesRejectedPartial: 'the receiver took the request without them',
  samplesTooLarge: 'the receiver takes no request of that size',
  samplesDroppedStop: 'they still waited when this collector was stopped',
} as const satisfies Partial<Record<keyof SenderStats, string>>;

export class Forwarder {
  readonly #address: string;
  readonly #sender: RequestSender;
  readonly #counters: GrpcClient;
  readonly #counterReports = { sent: 0, lost: 0 };
  #counterCalls = 0;

  constructor(options: SenderOptions, log: SenderLog) {
    this.#address = options.address;
    this.#sender = new RequestSender(options, log);
    this.#counters = new GrpcClient(options);
  }

  /** Takes an encoded ExportProfilesServiceRequest with so many sampling events. */
  forward(bytes: Uint8Array, samples: number): void {
    this.#sender.push({ bytes, samples });
  }

  /** Takes an encoded ExportMetricsServiceRequest of an agent; it is tried once. */
  forwardCounters(bytes: Uint8Array): void {
    if (this.#counterCalls >= MAX_COUNTER_CALLS) {
      this.#counterReports.lost++;
      return;
    }
    this.#counterCalls++;
    this.#counters.call(METRICS_EXPORT_PATH, bytes, COUNTERS_DEADLINE_MS, (error) => {
      this.#counterCalls--;
      this.#counterReports[error === null ? 'sent' : 'lost']++;
    });
  }

  status(): ForwardStatus {
    const stats = this.#sender.stats();
    const losses = Object.entries(LOSSES)
      .map(([name, reason]) => ({ reason, count: stats[name as keyof typeof LOSSES] }))
      .filter(({ count }) => count > 0);
    return {
      to: this.#address,
      samples: {
        received: stats.samplesPushed,
        sent: stats.samplesSent,
        waiting: stats.samplesQueued,
        lost: losses.reduce((sum, { count }) => sum + count, 0),
      },
      losses,
      requests: {
        sent: stats.requestsSent,
        retried: stats.retries,
        waiting: stats.queueEntries,
        waitingBytes: stats.queueBytes,
      },
      counterReports: { ...this.#counterReports },
    };
  }

  /** Sends what waits, for a few seconds; then it is dropped. */
  async stop(): Promise<void> {
    await this.#sender.flush(STOP_MS);
    this.#sender.close();
    this.#counters.close();
  }
}
