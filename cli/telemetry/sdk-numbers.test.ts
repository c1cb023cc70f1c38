import { expect, it } from 'vitest';
import { batchNumbers, metricNumbers } from './sdk-numbers.ts';

function read<T>(take: (read: { env: Record<string, string>; warn: (text: string) => void }) => T) {
  return (env: Record<string, string>): [T, string[]] => {
    const told: string[] = [];
    const numbers = take({ env, warn: (text) => told.push(text) });
    return [numbers, told];
  };
}

const metrics = read(metricNumbers);
const logs = read((options) => batchNumbers('BLRP', 1000, options));

it('takes the numbers of variables, and the usual ones without them', () => {
  expect(metrics({})).toEqual([{ exportIntervalMillis: 60_000, exportTimeoutMillis: 30_000 }, []]);
  expect(metrics({ OTEL_METRIC_EXPORT_INTERVAL: '', OTEL_METRIC_EXPORT_TIMEOUT: ' ' })).toEqual(metrics({}));
  expect(logs({ OTEL_BLRP_SCHEDULE_DELAY: '20', OTEL_BLRP_EXPORT_TIMEOUT: '30' })).toEqual([
    { scheduledDelayMillis: 20, exportTimeoutMillis: 30, maxQueueSize: 2048, maxExportBatchSize: 512 },
    [],
  ]);
});

it('waits for an export no longer than until the next one', () => {
  expect(metrics({ OTEL_METRIC_EXPORT_INTERVAL: '500' })[0]).toEqual({
    ...{ exportIntervalMillis: 500, exportTimeoutMillis: 500 },
  });
});

// a timer of more than 2^31 - 1 ms would go off at once, and again
it.each(['0', '-5', '99999999999', '1.5', 'soon', 'NaN', 'Infinity'])(
  'leaves %j out, and says so',
  (value) => {
    expect(metrics({ OTEL_METRIC_EXPORT_INTERVAL: value })).toEqual([
      { exportIntervalMillis: 60_000, exportTimeoutMillis: 30_000 },
      [
        `OTEL_METRIC_EXPORT_INTERVAL is "${value}", which is not a whole number from 1 to 2147483647: 60000 is taken`,
      ],
    ]);
    expect(logs({ OTEL_BLRP_MAX_EXPORT_BATCH_SIZE: value })[0].maxExportBatchSize).toBe(512);
  },
);
