import type { CollectorStatus, StatusResponse } from '../../collector/status/status.ts';
import type { PrometheusMetric } from '../../common/base/prometheus.ts';
import { processMetrics } from './process-metrics.ts';

const PREFIX = 'everyframe_collector_';

type Values = PrometheusMetric['values'];

const by = (label: string, values: Readonly<Record<string, number>>): Values =>
  Object.entries(values).map(([name, value]) => ({ labels: { [label]: name }, value }));

const counter = (name: string, help: string, values: Values): PrometheusMetric => ({
  name: `${PREFIX}${name}_total`,
  kind: 'counter',
  help,
  values,
});

const gauge = (name: string, help: string, value: number | undefined): PrometheusMetric => ({
  name: PREFIX + name,
  kind: 'gauge',
  help,
  values: value === undefined ? [] : [{ value }],
});

/** What `GET /api/v1/status` says, as numbers; where there are tenants, of each. */
export function collectorMetrics(status: CollectorStatus): PrometheusMetric[] {
  const { tenants, requestMemory, connections, unauthenticated } = status;
  const each = tenants.map((tenant) => withTenant(tenantMetrics(tenant), tenant.tenant));
  const ofTenants = each[0]!.map((metric, i) => ({
    ...metric,
    values: each.flatMap((metrics) => metrics[i]!.values),
  }));
  return [
    ...processMetrics('collector'),
    ...ofTenants,
    gauge('request_bytes', 'Requests in memory.', requestMemory.bytes),
    counter('requests_without_room', 'Requests for which there was no memory.', one(requestMemory.refused)),
    gauge('connections', 'Connections that are open.', connections.connections),
    counter('connections_cut', 'Connections that were cut.', one(connections.cut)),
    counter(
      'unauthenticated_requests',
      "Requests refused for lack of a tenant's token.",
      one(unauthenticated),
    ),
  ];
}

function withTenant(metrics: PrometheusMetric[], tenant: string | undefined): PrometheusMetric[] {
  if (tenant === undefined) return metrics;
  return metrics.map((metric) => ({
    ...metric,
    values: metric.values.map(({ labels, value }) => ({ labels: { tenant, ...labels }, value })),
  }));
}

function tenantMetrics(status: StatusResponse): PrometheusMetric[] {
  const { requests, samples, store, agents, forward } = status;
  return [
    counter('requests', 'Requests by what became of them.', by('result', requests)),
    counter('samples', 'Samples: received, and of those stored or rejected.', by('result', samples)),
    counter(
      'store_dropped_samples',
      'Samples that left the store, to stay within its size or for their age.',
      by('reason', { size: store.droppedForMemory, age: store.droppedForAge }),
    ),
    gauge('store_samples', 'Samples in the store.', store.samples),
    gauge('store_bytes', 'What the store takes.', store.bytes),
    gauge('store_max_bytes', 'What the store may take.', store.maxBytes),
    gauge('store_problem', '1 while what arrives cannot be written.', store.problem === undefined ? 0 : 1),
    gauge(
      'store_oldest_seconds',
      'Age of the oldest sample.',
      store.oldestMs === undefined ? undefined : (status.nowMs - store.oldestMs) / 1000,
    ),
    gauge('agents', 'Senders that are known.', agents.length),
    gauge(
      'last_samples_seconds',
      'Time since samples last arrived.',
      sinceLast(
        status.nowMs,
        agents.map(({ lastSamplesMs }) => lastSamplesMs),
      ),
    ),
    counter(
      'forward_samples',
      'Samples passed on, by what became of them.',
      forward ? by('result', { sent: forward.samples.sent, lost: forward.samples.lost }) : [],
    ),
    gauge('forward_waiting_bytes', 'What waits to be passed on.', forward?.requests.waitingBytes),
  ];
}

const one = (value: number): Values => [{ value }];

function sinceLast(nowMs: number, times: readonly (number | undefined)[]): number | undefined {
  const last = Math.max(...times.map((time) => time ?? -Infinity));
  return Number.isFinite(last) ? (nowMs - last) / 1000 : undefined;
}
