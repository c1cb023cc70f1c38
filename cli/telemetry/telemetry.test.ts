import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { pino } from 'pino';
import protobuf from 'protobufjs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { packageRoot } from '../../agent/base/package-root.ts';
import { logLines, requestsSent } from '../../common/base/observed.ts';
import { decodeCounters } from '../../common/profile/otlp/otlp-metrics.ts';
import { openSignal } from './signals.ts';
import { startTelemetry } from './telemetry.ts';

/** Fields of opentelemetry-proto 1.10 that are looked at. */
const { root } = protobuf.parse(`syntax = "proto3";
message Text { string string_value = 1; }
message LogsData { repeated ResourceLogs r = 1; }
message ResourceLogs { repeated ScopeLogs s = 2; }
message ScopeLogs { repeated LogRecord logs = 2; }
message LogRecord { fixed64 time_unix_nano = 1; int32 severity_number = 2; string severity_text = 3; Text body = 5; }
message TracesData { repeated ResourceSpans r = 1; }
message ResourceSpans { repeated ScopeSpans s = 2; }
message ScopeSpans { repeated Span spans = 2; }
message Span { string name = 5; int32 kind = 6; fixed64 start_time_unix_nano = 7; fixed64 end_time_unix_nano = 8; Status status = 15; }
message Status { string message = 2; int32 code = 3; }`);

let server: Server;
let port = 0;
let got: Record<string, Buffer[]>;
const logs: string[] = [];
const log = pino(
  new Writable({
    write(line, _, done) {
      logs.push(String(line));
      done();
    },
  }),
);

beforeEach(async () => {
  got = {};
  server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const place = `${request.headers['x-key']} ${request.url}`;
    got[place] = [...(got[place] ?? []), Buffer.concat(parts)];
    response.end();
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  port = (server.address() as AddressInfo).port;
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
  vi.unstubAllEnvs();
});

const environment = (more: Record<string, string> = {}): Record<string, string> => ({
  OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}/base`,
  OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
  OTEL_EXPORTER_OTLP_HEADERS: 'x-key=secret',
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `http://127.0.0.1:${port}/elsewhere`,
  ...more,
});

/** The SDK reads some variables itself. */
function start(more: Record<string, string> = {}) {
  const env = environment(more);
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  const metrics = () => [
    { name: 'everyframe_agent_x_total', kind: 'counter' as const, help: 'x', values: [{ value: 7 }] },
  ];
  return startTelemetry('otlp', 'agent', metrics, log, env)!;
}

const decode = <T>(type: string, bytes: Buffer | undefined): T =>
  root.lookupType(type).toObject(root.lookupType(type).decode(bytes!), { longs: Number }) as T;

describe('--telemetry otlp', () => {
  it('sends metrics, logs and spans to where the variables say, in time for the end', async () => {
    const telemetry = start({ OTEL_RESOURCE_ATTRIBUTES: 'team=a', OTEL_SERVICE_NAME: 'mine' });
    logLines.publish('{"level":"warn","time":"2026-01-02T03:04:05.678Z","name":"agent","msg":"words"}');
    requestsSent.publish({ startMs: 1000, endMs: 1500, bytes: 10, samples: 3, result: 'refused: no' });
    await telemetry.stop();

    const [report] = decodeCounters(got['secret /base/v1/metrics']![0]!);
    expect(report!.resource).toMatchObject({
      'service.name': 'mine',
      team: 'a',
      'telemetry.sdk.language': 'nodejs',
    });
    expect(report!.counters).toEqual({ 'everyframe.agent.x': 7 });
    expect(decode('LogsData', got['secret /base/v1/logs']![0])).toMatchObject({
      r: [
        {
          s: [
            {
              logs: [
                {
                  timeUnixNano: Date.parse('2026-01-02T03:04:05.678Z') * 1e6,
                  severityNumber: 13,
                  severityText: 'warn',
                  body: { stringValue: 'words' },
                },
              ],
            },
          ],
        },
      ],
    });
    expect(decode('TracesData', got['secret /elsewhere']![0])).toMatchObject({
      r: [
        {
          s: [
            {
              spans: [
                {
                  name: 'push profiles',
                  kind: 3,
                  startTimeUnixNano: 1e9,
                  endTimeUnixNano: 1.5e9,
                  status: { code: 2, message: 'refused: no' },
                },
              ],
            },
          ],
        },
      ],
    });
    expect([logLines.hasSubscribers, requestsSent.hasSubscribers]).toEqual([false, false]);
  });

  it('sends no signal that is none, and a file of wrong lines does no harm', async () => {
    const telemetry = start({ OTEL_METRICS_EXPORTER: 'none', OTEL_TRACES_EXPORTER: 'none' });
    for (const line of ['no JSON', '{', 'null', '1', '{"time":"x"}', '{"level":{"a":1}}'])
      logLines.publish(line);
    requestsSent.publish({ startMs: 1000, endMs: 1500, bytes: 10, result: 'ok' });
    await telemetry.stop();
    expect(Object.keys(got)).toEqual(['secret /base/v1/logs']);
  });

  it('shows once that a receiver is away, and ends all the same', async () => {
    logs.length = 0;
    const telemetry = start({
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1',
      OTEL_METRIC_EXPORT_INTERVAL: '20',
    });
    await vi.waitFor(() => expect(logs.join('')).toContain("metrics of --telemetry don't arrive"));
    const before = performance.now();
    await telemetry.stop();
    expect(performance.now() - before).toBeLessThan(5000);
    expect(logs.join('').match(/metrics of --telemetry/g)).toHaveLength(1);
  });

  it('is nothing where OTEL_SDK_DISABLED says so, or nobody asked', () => {
    const env = { OTEL_SDK_DISABLED: 'true' };
    expect(startTelemetry('otlp', 'agent', () => [], log, env)).toBeUndefined();
    expect(startTelemetry(undefined, 'agent', () => [], log, {})).toBeUndefined();
  });

  it('names the variable that is wrong', () => {
    const wrong = { OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: 'nowhere' };
    expect(() => openSignal('logs', wrong)).toThrow('OTEL_EXPORTER_OTLP_LOGS_ENDPOINT is "nowhere"');
  });

  it('is not in what samples: the SDK is a file of its own', () => {
    const sdk = /PeriodicExportingMetricReader/;
    expect(readFileSync(join(packageRoot(), 'build/cli/sampling-bundle.cjs'), 'utf8')).not.toMatch(sdk);
    expect(readFileSync(join(packageRoot(), 'build/telemetry/otlp.cjs'), 'utf8')).toMatch(sdk);
  });
});
