import { type HrTime, ValueType } from '@opentelemetry/api';
import { millisToHrTime } from '@opentelemetry/core';
import { AggregationTemporality, DataPointType, type MetricData } from '@opentelemetry/sdk-metrics';
import type { PrometheusMetric } from '../../common/base/prometheus.ts';

const startTime: HrTime = millisToHrTime(Math.round(Date.now() - process.uptime() * 1000));

/** `everyframe.agent.reporter_samples_sent` of `everyframe_agent_reporter_samples_sent_total`. */
const nameOf = ({ name, kind }: PrometheusMetric): string =>
  (kind === 'counter' ? name.replace(/_total$/, '') : name).replace(
    /^everyframe_(agent|collector)_/,
    'everyframe.$1.',
  );

/** Values of `/metrics` as the SDK's own. */
export const metricDataOf = (metrics: readonly PrometheusMetric[], nowMs: number): MetricData[] =>
  metrics
    .filter(({ values }) => values.length > 0)
    .map((metric) => {
      const data = {
        descriptor: {
          name: nameOf(metric),
          description: metric.help,
          unit: '',
          valueType: ValueType.DOUBLE,
        },
        aggregationTemporality: AggregationTemporality.CUMULATIVE,
        dataPoints: metric.values.map(({ labels = {}, value }) => ({
          ...{ startTime, endTime: millisToHrTime(nowMs), attributes: labels, value },
        })),
      };
      return metric.kind === 'counter'
        ? { ...data, dataPointType: DataPointType.SUM as const, isMonotonic: true }
        : { ...data, dataPointType: DataPointType.GAUGE as const };
    });
