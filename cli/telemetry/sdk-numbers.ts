/**
 * Numbers of OpenTelemetry's variables (configuration/sdk-environment-variables.md). One that is out of range is left out with a
 * warning, as is said there: the SDK itself throws without the variable's name, or exports without a pause.
 */

export interface ReadOptions {
  env: Record<string, string | undefined>;
  warn: (message: string) => void;
}

/** What a timer can have. */
const MAX = 2 ** 31 - 1;

function read(name: string, usual: number, { env, warn }: ReadOptions): number {
  const text = env[name]?.trim() ?? '';
  if (text === '') return usual;
  const number = Number(text);
  if (Number.isInteger(number) && number >= 1 && number <= MAX) return number;
  warn(`${name} is "${text}", which is not a whole number from 1 to ${MAX}: ${usual} is taken`);
  return usual;
}

export function metricNumbers(options: ReadOptions) {
  const exportIntervalMillis = read('OTEL_METRIC_EXPORT_INTERVAL', 60_000, options);
  const exportTimeoutMillis = read('OTEL_METRIC_EXPORT_TIMEOUT', 30_000, options);
  return { exportIntervalMillis, exportTimeoutMillis: Math.min(exportTimeoutMillis, exportIntervalMillis) };
}

/** Of log records or spans. */
export const batchNumbers = (processor: 'BLRP' | 'BSP', usualDelayMs: number, options: ReadOptions) => ({
  scheduledDelayMillis: read(`OTEL_${processor}_SCHEDULE_DELAY`, usualDelayMs, options),
  exportTimeoutMillis: read(`OTEL_${processor}_EXPORT_TIMEOUT`, 30_000, options),
  maxQueueSize: read(`OTEL_${processor}_MAX_QUEUE_SIZE`, 2048, options),
  maxExportBatchSize: read(`OTEL_${processor}_MAX_EXPORT_BATCH_SIZE`, 512, options),
});
