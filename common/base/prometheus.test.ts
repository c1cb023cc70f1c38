import { expect, it } from 'vitest';
import { countersAsMetrics, prometheusText, snakeCase } from './prometheus.ts';

it('escapes what labels and help may hold', () => {
  const text = prometheusText([
    { name: 'a', kind: 'gauge', help: 'one\ntwo \\', values: [{ labels: { b: 'x"y\\z\n' }, value: 1.5 }] },
  ]);
  expect(text).toBe('# HELP a one\\ntwo \\\\\n# TYPE a gauge\na{b="x\\"y\\\\z\\n"} 1.5\n');
});

it('names counters as Prometheus does', () => {
  expect(['reporter.samplesSent', 'bpf.UnwindNoTable', 'a.b-c'].map(snakeCase)).toEqual([
    'reporter_samples_sent',
    'bpf_unwind_no_table',
    'a_b_c',
  ]);
  const metrics = countersAsMetrics('p_', { 'a.sent': 1, 'a.queueBytes': 2 }, (name) =>
    name.endsWith('Bytes'),
  );
  expect(metrics.map(({ name, kind }) => [name, kind])).toEqual([
    ['p_a_sent_total', 'counter'],
    ['p_a_queue_bytes', 'gauge'],
  ]);
});
