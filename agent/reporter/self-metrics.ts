/**
 * Pushes the agent's own counters as OTLP metrics to where its profiles go. Values are cumulative, so a push
 * that fails costs nothing but its moment: the next one says it all again.
 */
import { hostname } from 'node:os';
import { type ClientUnaryCall, type ServiceError, status } from '@grpc/grpc-js';
import type { MetricData, ResourceMetrics } from '@opentelemetry/sdk-metrics';
import { type ConnectionOptions, GrpcClient } from './grpc-client.ts';
import type { Failure, ReporterLog } from './link-log.ts';
import { readScope } from './scope.ts';

const EXPORT_PATH = '/opentelemetry.proto.collector.metrics.v1.MetricsService/Export';
const PREFIX = 'everyframe.agent.';
const INTERVAL_MS = 60_000;
const DEADLINE_MS = 5000;
/** At stop the last values get that long. */
const STOP_DEADLINE_MS = 500;
/** Numbers that also fall, by the end of their names. */
const GAUGE = /(?:^|\.)(?:queueBytes|queueEntries|samplesQueued)$/;
/** api.ValueType, which the SDK doesn't pass on: INT and DOUBLE. */
const INT = 0;
const DOUBLE = 1;

const failureOf = (error: ServiceError): Failure => ({
  code: status[error.code] ?? `code ${error.code}`,
  message: error.details,
});

type HrTime = [seconds: number, nanos: number];

const hrTime = (unixMs: number): HrTime => [Math.floor(unixMs / 1000), Math.floor((unixMs % 1000) * 1e6)];

type Transformer = typeof import('@opentelemetry/otlp-transformer') &
  typeof import('@opentelemetry/sdk-metrics');

/** Loaded when first needed: the libraries take more memory than all that the reporter holds. */
async function loadTransformer(): Promise<Transformer> {
  const [transformer, sdk] = await Promise.all([
    import('@opentelemetry/otlp-transformer'),
    import('@opentelemetry/sdk-metrics'),
  ]);
  return { ...transformer, ...sdk };
}

/** Counters as cumulative monotonic sums since `startMs`; what isn't a finite number is left out. */
function toMetrics(
  sdk: Transformer,
  counters: Record<string, number>,
  startMs: number,
  nowMs: number,
): MetricData[] {
  const times = { startTime: hrTime(startMs), endTime: hrTime(nowMs), attributes: {} };
  return Object.entries(counters)
    .filter(([, value]) => Number.isFinite(value))
    .map(([name, value]): MetricData => {
      const shared = {
        descriptor: {
          name: PREFIX + name,
          description: '',
          unit: '',
          valueType: Number.isSafeInteger(value) ? INT : DOUBLE,
        },
        aggregationTemporality: sdk.AggregationTemporality.CUMULATIVE,
        dataPoints: [{ ...times, value }],
      };
      return GAUGE.test(name)
        ? { ...shared, dataPointType: sdk.DataPointType.GAUGE }
        : { ...shared, dataPointType: sdk.DataPointType.SUM, isMonotonic: true };
    });
}

export class SelfMetrics {
  readonly #client: GrpcClient;
  readonly #counters: () => Record<string, number>;
  readonly #log: ReporterLog;
  readonly #timer: NodeJS.Timeout;
  readonly #startMs = Date.now();
  readonly #scope = readScope();
  readonly #transformer: Promise<Transformer>;
  #failedWith: string | undefined;
  #pushing: Promise<void> | undefined;
  #call: ClientUnaryCall | undefined;

  /** Pushes every `intervalMs` until stopped. */
  constructor(
    connection: ConnectionOptions,
    counters: () => Record<string, number>,
    log: ReporterLog,
    intervalMs = INTERVAL_MS,
  ) {
    this.#client = new GrpcClient(connection);
    this.#counters = counters;
    this.#log = log;
    this.#transformer = loadTransformer();
    this.#timer = setInterval(() => void this.#push(DEADLINE_MS), intervalMs);
    this.#timer.unref();
  }

  /** Pushes the last values and closes the connection; takes at most about a second. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#call?.cancel();
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
    const sdk = await this.#transformer;
    const { scopeName, scopeVersion } = this.#scope;
    const request: ResourceMetrics = {
      // The serialiser reads nothing but the attributes of a resource.
      resource: {
        attributes: {
          'service.name': `${scopeName}-agent`,
          'service.version': scopeVersion,
          'host.name': hostname(),
        },
      } as unknown as ResourceMetrics['resource'],
      scopeMetrics: [
        {
          scope: { name: scopeName, version: scopeVersion },
          metrics: toMetrics(sdk, this.#counters(), this.#startMs, Date.now()),
        },
      ],
    };
    const bytes = sdk.ProtobufMetricsSerializer.serializeRequest(request);
    if (!bytes) return;
    await new Promise<void>((resolve) => {
      this.#call = this.#client.call(EXPORT_PATH, bytes, deadlineMs, (error) => {
        this.#call = undefined;
        // Cancelled by stop(), which pushes anew.
        if (error?.code !== status.CANCELLED) this.#noteResult(error && failureOf(error));
        resolve();
      });
    });
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
