import { status } from '@grpc/grpc-js';
import protobuf from 'protobufjs';
import { expect, it, vi } from 'vitest';
import { type ReceivedCall, ScriptedReceiver } from '../../test/fixtures/scripted-receiver.ts';
import { readScope } from './scope.ts';
import { SelfMetrics } from './self-metrics.ts';

const PATH = '/opentelemetry.proto.collector.metrics.v1.MetricsService/Export';

/** The part of opentelemetry-proto's metrics.proto that is checked here, with its field numbers. */
const Request = protobuf
  .parse(`
syntax = "proto3";
message Request { repeated ResourceMetrics resource_metrics = 1; }
message ResourceMetrics { Resource resource = 1; repeated ScopeMetrics scope_metrics = 2; }
message Resource { repeated KeyValue attributes = 1; }
message KeyValue { string key = 1; AnyValue value = 2; }
message AnyValue { string string_value = 1; }
message ScopeMetrics { Scope scope = 1; repeated Metric metrics = 2; }
message Scope { string name = 1; string version = 2; }
message Metric { string name = 1; Gauge gauge = 5; Sum sum = 7; }
message Gauge { repeated Point data_points = 1; }
message Sum { repeated Point data_points = 1; int32 aggregation_temporality = 2; bool is_monotonic = 3; }
message Point {
  fixed64 start_time_unix_nano = 2; fixed64 time_unix_nano = 3; double as_double = 4; sfixed64 as_int = 6;
}`)
  .root.lookupType('Request');

interface Point {
  startTimeUnixNano: number;
  timeUnixNano: number;
  asInt?: string;
  asDouble?: number;
}

interface Metric {
  name: string;
  gauge?: { dataPoints: Point[] };
  sum?: { dataPoints: Point[]; aggregationTemporality: number; isMonotonic: boolean };
}

function decode(bytes: Buffer): { attributes: Record<string, string>; metrics: Metric[] } {
  const { resourceMetrics } = Request.toObject(Request.decode(bytes), { longs: String });
  const [{ resource, scopeMetrics }] = resourceMetrics;
  expect(scopeMetrics[0].scope.name).toBe('everyframe');
  const attributes = resource.attributes.map(
    (each: { key: string; value: { stringValue: string } }) => [each.key, each.value.stringValue] as const,
  );
  return { attributes: Object.fromEntries(attributes), metrics: scopeMetrics[0].metrics };
}

function collectLog() {
  const lines: string[] = [];
  const add = (line: string) => lines.push(line);
  return { lines, log: { info: add, warn: add, error: add } };
}

const connectionTo = (address: string) =>
  ({ address, tls: undefined, headers: [], compression: 'gzip' }) as const;

it('pushes counters as cumulative monotonic sums, and once more at stop', async () => {
  const calls: ReceivedCall[] = [];
  const receiver = await ScriptedReceiver.start({
    path: PATH,
    onCall(call) {
      calls.push(call);
      if (calls.length <= 2) call.fail(status.UNIMPLEMENTED, 'no metrics here');
      else call.ok();
    },
  });
  const { lines, log } = collectLog();
  const counters = { samples: 0, big: 2 ** 45, share: 0.5, broken: Number.NaN, 'reporter.queueBytes': 9 };
  const startedMs = Date.now();
  const metrics = new SelfMetrics(connectionTo(receiver.address), () => counters, log, 20);
  await vi.waitFor(() => expect(calls.length).toBeGreaterThanOrEqual(4), 10_000);
  counters.samples = 77;
  await metrics.stop();
  receiver.stop();

  const { attributes, metrics: last } = decode(calls.at(-1)!.request);
  expect(attributes).toMatchObject({
    'service.name': 'everyframe-agent',
    'service.version': readScope().scopeVersion,
  });
  expect(last.map(({ name }) => name)).toEqual([
    'everyframe.agent.samples',
    'everyframe.agent.big',
    'everyframe.agent.share',
    'everyframe.agent.reporter.queueBytes',
  ]);
  const [samples, big, share, queueBytes] = last;
  expect(samples!.sum).toMatchObject({ aggregationTemporality: 2, isMonotonic: true });
  const [point] = samples!.sum!.dataPoints;
  expect(point!.asInt).toBe('77');
  const startMs = Number(point!.startTimeUnixNano) / 1e6;
  expect(startMs).toBeGreaterThanOrEqual(startedMs - 1);
  expect(Number(point!.timeUnixNano) / 1e6).toBeGreaterThan(startMs);
  expect(big!.sum!.dataPoints[0]!.asInt).toBe(String(2 ** 45));
  expect(share!.sum!.dataPoints[0]!.asDouble).toBe(0.5);
  expect(queueBytes!.gauge!.dataPoints[0]!.asInt).toBe('9');
  expect(lines).toHaveLength(2);
  expect(lines[0]).toContain('UNIMPLEMENTED: no metrics here');
});

it('stops in time where nobody answers', async () => {
  const receiver = await ScriptedReceiver.start({ path: PATH, onCall() {} });
  const { lines, log } = collectLog();
  const metrics = new SelfMetrics(connectionTo(receiver.address), () => ({ samples: 1 }), log);
  await metrics.stop();
  receiver.stop();
  expect(lines.join()).toContain('DEADLINE_EXCEEDED');
});
