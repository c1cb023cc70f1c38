import { isGauge } from '../../agent/reporter/self-metrics.ts';
import { countersAsMetrics, type PrometheusMetric } from '../../common/base/prometheus.ts';
import { processMetrics } from './process-metrics.ts';

/** What the agent counts, by the names of docs/counters.md. */
export const agentMetrics = (counters: Readonly<Record<string, number>>): PrometheusMetric[] => [
  ...processMetrics('agent'),
  ...countersAsMetrics('everyframe_agent_', counters, isGauge),
];
