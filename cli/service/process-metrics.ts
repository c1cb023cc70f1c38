/** What Prometheus' own libraries tell of every process, and which build this is. */
import { readdirSync } from 'node:fs';
import type { PrometheusMetric } from '../../common/base/prometheus.ts';
import { productVersion } from '../program/program.ts';

const startSeconds = Date.now() / 1000 - process.uptime();

export function processMetrics(part: 'agent' | 'collector'): PrometheusMetric[] {
  const { user, system } = process.cpuUsage();
  const gauge = (name: string, help: string, value: number): PrometheusMetric => ({
    name,
    kind: 'gauge',
    help,
    values: [{ value }],
  });
  return [
    {
      ...gauge('everyframe_build_info', 'Which build runs.', 1),
      values: [{ labels: { part, version: productVersion() }, value: 1 }],
    },
    gauge('process_start_time_seconds', 'Start in Unix time.', startSeconds),
    gauge('process_resident_memory_bytes', 'Resident memory.', process.memoryUsage.rss()),
    gauge('process_open_fds', 'Open descriptors.', readdirSync('/proc/self/fd').length),
    {
      name: 'process_cpu_seconds_total',
      kind: 'counter',
      help: 'CPU time.',
      values: [{ value: (user + system) / 1e6 }],
    },
  ];
}
