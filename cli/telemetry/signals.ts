/** Where each signal of `--telemetry otlp` goes, by OpenTelemetry's variables (protocol/exporter.md). */
import { reporterOptions } from '../../agent/reporter/options.ts';
import { parseAgentOptions } from '../../agent/settings/options.ts';
import { makeSignalClient, type SignalClient } from '../../otlp-client/signal-client.ts';

export type Signal = 'metrics' | 'logs' | 'traces';
export const SIGNALS: readonly Signal[] = ['metrics', 'logs', 'traces'];

const SERVICES: Record<Signal, string> = {
  metrics: 'metrics.v1.MetricsService',
  logs: 'logs.v1.LogsService',
  traces: 'trace.v1.TraceService',
};

type Environment = Record<string, string | undefined>;

/** `none` of OTEL_METRICS_EXPORTER and the like leaves a signal out. */
export const isWanted = (signal: Signal, env: Environment): boolean =>
  env[`OTEL_${signal.toUpperCase()}_EXPORTER`]?.trim() !== 'none';

export interface SignalLink {
  client: SignalClient;
  timeoutMs: number;
}

/**
 * Connects when something is sent. gRPC unless OTEL_EXPORTER_OTLP_PROTOCOL says otherwise, as profiles.
 *
 * @throws BadSetting which names the variable
 */
export function openSignal(signal: Signal, env: Environment): SignalLink {
  const variables = Object.entries(env).filter(([name]) => name.startsWith('OTEL_EXPORTER_OTLP_'));
  const options = parseAgentOptions(
    {},
    { env: Object.fromEntries(variables), exporterSignal: signal.toUpperCase() },
  );
  const port = options.protocol === 'grpc' ? 4317 : 4318;
  const receiver = options.collectionAgent[0] || `http://localhost:${port}`;
  const { http, ...connection } = reporterOptions(options, receiver, env);
  const url = http && new URL(http.profiles.href.replace(/v1development\/profiles$/, `v1/${signal}`));
  const path = `/opentelemetry.proto.collector.${SERVICES[signal]}/Export`;
  return {
    client: makeSignalClient(http ? { ...connection, http } : connection, { path, url }),
    timeoutMs: options.exportTimeout,
  };
}
