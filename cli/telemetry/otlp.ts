/** Metrics, logs and traces by OpenTelemetry's SDK. Bundled alone (build/telemetry/otlp.cjs): telemetry.ts loads it. */
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { SpanKind, SpanStatusCode } from '@opentelemetry/api';
import {
  ProtobufLogsSerializer,
  ProtobufMetricsSerializer,
  ProtobufTraceSerializer,
} from '@opentelemetry/otlp-transformer';
import {
  defaultResource,
  detectResources,
  envDetector,
  type Resource,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import { BatchLogRecordProcessor, LoggerProvider } from '@opentelemetry/sdk-logs';
import {
  AggregationTemporality,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import type { Logger } from 'pino';
import { logLines, type ObservedRequest, requestsSent, requestsTaken } from '../../common/base/observed.ts';
import type { PrometheusMetric } from '../../common/base/prometheus.ts';
import { logRecordOf } from './log-record.ts';
import { metricDataOf } from './metric-data.ts';
import { OtlpExporter } from './otlp-exporter.ts';
import { batchNumbers, metricNumbers, type ReadOptions } from './sdk-numbers.ts';
import type { Signal, SignalLink } from './signals.ts';

export interface OtlpTelemetry {
  /** What waits is sent, for two seconds at most. */
  stop(): Promise<void>;
}

export interface OtlpOptions {
  serviceName: string;
  version: string;
  /** Of the signals that are wanted. */
  links: ReadonlyMap<Signal, SignalLink>;
  metrics(): PrometheusMetric[];
  log: Pick<Logger, 'warn' | 'info'>;
  env: NodeJS.ProcessEnv;
}

interface Provider {
  shutdown(): Promise<void>;
}

const STOP_MS = 2000;

export function startOtlp(options: OtlpOptions): OtlpTelemetry {
  const resource = resourceOf(options);
  const unsubscribe: (() => void)[] = [];
  const parts = { metrics: startMetrics, logs: startLogs, traces: startTraces };
  const providers = [...options.links].map(([signal, link]) =>
    parts[signal](options, link, resource, (end) => unsubscribe.push(end)),
  );
  return {
    async stop() {
      for (const end of unsubscribe) end();
      const ended = Promise.allSettled(providers.map((provider) => provider.shutdown()));
      await Promise.race([ended, sleep(STOP_MS, undefined, { ref: false })]);
      for (const { client } of options.links.values()) client.close();
    },
  };
}

/** OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME are stronger. */
function resourceOf({ serviceName, version }: OtlpOptions): Resource {
  const own = { 'service.name': serviceName, 'service.version': version, 'host.name': hostname() };
  return defaultResource()
    .merge(resourceFromAttributes(own))
    .merge(detectResources({ detectors: [envDetector] }));
}

const numbersOf = ({ env, log }: OtlpOptions): ReadOptions => ({ env, warn: (message) => log.warn(message) });

type Start = (
  options: OtlpOptions,
  link: SignalLink,
  resource: Resource,
  atStop: (end: () => void) => void,
) => Provider;

const startMetrics: Start = (options, link, resource) => {
  const exporter = new OtlpExporter('metrics', ProtobufMetricsSerializer, link, options.log);
  const scope = { name: 'everyframe', version: options.version };
  const reader = new PeriodicExportingMetricReader({
    exporter: Object.assign(exporter, {
      selectAggregationTemporality: () => AggregationTemporality.CUMULATIVE,
    }),
    ...metricNumbers(numbersOf(options)),
    metricProducers: [
      {
        collect: () => {
          const metrics = metricDataOf(options.metrics(), Date.now());
          return Promise.resolve({
            resourceMetrics: { resource, scopeMetrics: [{ scope, metrics }] },
            errors: [],
          });
        },
      },
    ],
  });
  return new MeterProvider({ resource, readers: [reader] });
};

const startLogs: Start = (options, link, resource, atStop) => {
  const processor = new BatchLogRecordProcessor({
    exporter: new OtlpExporter('logs', ProtobufLogsSerializer, link, options.log),
    ...batchNumbers('BLRP', 1000, numbersOf(options)),
  });
  const provider = new LoggerProvider({ resource, processors: [processor] });
  const logger = provider.getLogger('everyframe', options.version);
  const emit = (line: unknown): void => {
    const record = logRecordOf(String(line));
    if (record) logger.emit(record);
  };
  logLines.subscribe(emit);
  atStop(() => logLines.unsubscribe(emit));
  return provider;
};

const startTraces: Start = (options, link, resource, atStop) => {
  const exporter = new OtlpExporter('traces', ProtobufTraceSerializer, link, options.log);
  const processor = new BatchSpanProcessor(exporter, batchNumbers('BSP', 5000, numbersOf(options)));
  const provider = new BasicTracerProvider({ resource, spanProcessors: [processor] });
  const tracer = provider.getTracer('everyframe', options.version);
  const note =
    (name: string, kind: SpanKind) =>
    (message: unknown): void => {
      const { startMs, endMs, bytes, samples, peer, result } = message as ObservedRequest;
      const attributes = {
        'everyframe.request.bytes': bytes,
        ...(samples !== undefined && { 'everyframe.request.samples': samples }),
        ...(peer !== undefined && { 'client.address': peer }),
      };
      const span = tracer.startSpan(name, { kind, startTime: new Date(startMs), attributes });
      if (result !== 'ok') span.setStatus({ code: SpanStatusCode.ERROR, message: result });
      span.end(new Date(endMs));
    };
  const sent = note('push profiles', SpanKind.CLIENT);
  const taken = note('take profiles', SpanKind.SERVER);
  requestsSent.subscribe(sent);
  requestsTaken.subscribe(taken);
  atStop(() => {
    requestsSent.unsubscribe(sent);
    requestsTaken.unsubscribe(taken);
  });
  return provider;
};
