/** Numbers as Prometheus reads them (prometheus/docs, instrumenting/exposition_formats.md, version 0.0.4). */

export interface PrometheusMetric {
  /** In the form of Prometheus; those of counters end with _total. */
  name: string;
  kind: 'counter' | 'gauge';
  help: string;
  /** One without labels, or one for each set of them. */
  values: readonly { labels?: Readonly<Record<string, string>>; value: number }[];
}

export const PROMETHEUS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

export function prometheusText(metrics: readonly PrometheusMetric[]): string {
  const lines = metrics.flatMap(({ name, kind, help, values }) => [
    `# HELP ${name} ${escaped(help)}`,
    `# TYPE ${name} ${kind}`,
    ...values.map(({ labels = {}, value }) => `${name}${labelText(labels)} ${value}`),
  ]);
  return `${lines.join('\n')}\n`;
}

const escaped = (text: string): string => text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');

function labelText(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(
    ([name, value]) => `${name}="${escaped(value).replaceAll('"', '\\"')}"`,
  );
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

/** `reporter_samples_sent` of `reporter.samplesSent`. */
export const snakeCase = (name: string): string =>
  name
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/[^A-Za-z0-9]+/g, '_')
    .toLowerCase();

/** Each counter by itself, named after `prefix`. */
export const countersAsMetrics = (
  prefix: string,
  counters: Readonly<Record<string, number>>,
  isGauge: (name: string) => boolean,
): PrometheusMetric[] =>
  Object.entries(counters).map(([name, value]) => ({
    name: `${prefix}${snakeCase(name)}${isGauge(name) ? '' : '_total'}`,
    kind: isGauge(name) ? 'gauge' : 'counter',
    help: name,
    values: [{ value }],
  }));
