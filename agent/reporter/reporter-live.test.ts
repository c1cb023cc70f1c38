import { status } from '@grpc/grpc-js';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { opentelemetry } from '#otlp';
import type { SenderOptions } from '../../otlp-client/request-sender.ts';
import { eventsIn, profileOf } from '../../test/fixtures/otlp-samples.ts';
import { retryInfo } from '../../test/fixtures/retry-info.ts';
import { type ReceivedCall, ScriptedReceiver } from '../../test/fixtures/scripted-receiver.ts';
import { Reporter } from './reporter.ts';

const PATH = '/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export';
const Response = opentelemetry.proto.collector.profiles.v1development.ExportProfilesServiceResponse;

type Answer = 'ok' | 'refuse' | 'unavailable' | 'retry-info' | 'partial' | 'stall' | 'die';

/** A collector that follows a script, then takes everything; it can be stopped and started on its port. */
class Collector {
  readonly script: Answer[] = [];
  readonly taken: number[] = [];
  calls = 0;
  #receiver: ScriptedReceiver | undefined;
  #port = 0;

  async start(): Promise<string> {
    const options = { path: PATH, onCall: (call: ReceivedCall) => this.#onCall(call), port: this.#port };
    this.#receiver = await ScriptedReceiver.start({
      ...options,
      channel: { 'grpc.max_receive_message_length': 3000 },
    });
    this.#port = this.#receiver.port;
    return this.#receiver.address;
  }

  stop(): void {
    this.#receiver?.stop();
    this.#receiver = undefined;
  }

  #onCall(call: ReceivedCall): void {
    this.calls++;
    const answer = this.script.shift() ?? 'ok';
    if (answer === 'ok') {
      this.taken.push(...eventsIn(call.request));
      call.ok();
    } else if (answer === 'partial') {
      const partialSuccess = { rejectedProfiles: 1, errorMessage: 'half of it is nonsense' };
      call.ok(Response.encode(Response.fromObject({ partialSuccess })).finish());
    } else if (answer === 'refuse') call.fail(status.UNIMPLEMENTED, 'no profiles here');
    else if (answer === 'unavailable') call.fail(status.UNAVAILABLE, 'shutting down');
    else if (answer === 'retry-info') call.fail(status.RESOURCE_EXHAUSTED, 'slow down', retryInfo(0, 30e6));
    else if (answer === 'die') this.stop();
    // 'stall': never answered
  }
}

const collector: { current?: Collector; reporter?: Reporter } = {};
afterEach(() => {
  collector.reporter?.close();
  collector.current?.stop();
});

async function setUp(more: Partial<SenderOptions> = {}) {
  const server = new Collector();
  collector.current = server;
  const address = await server.start();
  const lines: string[] = [];
  const add = (line: string) => lines.push(line);
  const options: SenderOptions = {
    ...{ address, tls: undefined, headers: [], compression: 'gzip', notes: [] },
    hints: { plaintext: '', authority: '', credentials: '' },
    ...{ maxRequestBytes: 4 << 20, minRequestBytes: 1, maxQueueBytes: 8 << 20, maxQueueEntries: 100 },
    ...{ requestTimeoutMs: 500, backoffMinMs: 10, backoffMaxMs: 50 },
    ...more,
  };
  const reporter = new Reporter(options, { info: add, warn: add, error: add });
  collector.reporter = reporter;
  const push = (count: number): void | Promise<void> =>
    reporter.push(profileOf([[count, 10], ...Array(3).fill([count, 10])]));
  const untilStats = (expected: Record<string, number>) =>
    vi.waitFor(() => expect(reporter.stats()).toMatchObject(expected), 15_000);
  return { server, reporter, lines, push, untilStats };
}

describe('Reporter against a real gRPC server', () => {
  it('starts without a collector and delivers all once there is one', async () => {
    const { server, reporter, lines, push, untilStats } = await setUp();
    server.stop();
    for (let i = 0; i < 10; i++) push(1);
    await vi.waitFor(() => expect(reporter.stats()['retries']).toBeGreaterThan(1));
    expect(reporter.stats()).toMatchObject({ samplesQueued: 40, samplesSent: 0 });
    await server.start();
    await untilStats({ samplesSent: 40, samplesQueued: 0 });
    expect(server.taken).toHaveLength(40);
    expect(lines).toHaveLength(2);
    expect(lines[0]).toContain('ECONNREFUSED');
  });

  it('gets over refusals, stalls, RetryInfo, partial success and a restart, counted to the sample', async () => {
    const { server, reporter, push, untilStats } = await setUp();
    server.script.push('ok', 'refuse', 'retry-info', 'unavailable', 'ok', 'partial', 'stall', 'ok', 'die');
    for (let i = 0; i < 6; i++) push(1);
    await vi.waitFor(() => expect(server.script).toHaveLength(0), 15_000);
    await vi.waitFor(() => expect(reporter.stats()['samplesQueued']).toBe(4));
    await server.start();
    await untilStats({ samplesQueued: 0 });
    expect(reporter.stats()).toMatchObject({
      samplesPushed: 24,
      samplesSent: 18,
      samplesRefused: 4,
      samplesRejectedPartial: 2,
      samplesDroppedOverflow: 0,
    });
    expect(server.taken).toHaveLength(16);
  });

  it('splits for a receiver with a smaller limit', async () => {
    const { server, reporter, untilStats } = await setUp({ compression: 'none' });
    await reporter.push(profileOf(Array.from({ length: 40 }, () => [2, 250])));
    await untilStats({ samplesSent: 80, samplesTooLarge: 0 });
    expect(new Set(server.taken).size).toBe(80);
  });

  it('overwrites the oldest while the collector is away, within its memory', async () => {
    const { server, reporter, push, untilStats } = await setUp({ maxQueueEntries: 5 });
    server.stop();
    for (let i = 0; i < 30; i++) push(1);
    await vi.waitFor(() => expect(reporter.stats()['retries']).toBeGreaterThan(0));
    for (let i = 0; i < 30; i++) push(1);
    expect(reporter.stats()).toMatchObject({
      samplesQueued: 20,
      queueEntries: 5,
      samplesDroppedOverflow: 220,
    });
    await server.start();
    await untilStats({ samplesSent: 20 });
    const taken = [...server.taken].sort((a, b) => a - b);
    expect(taken).toHaveLength(20);
    // The request that is under way when the queue runs over stays in it, however old it is.
    expect(taken.slice(4)).toEqual(Array.from({ length: 16 }, (_, i) => taken.at(-1)! - 15 + i));
  });

  it('flushes within its deadline even where the collector stalls', async () => {
    const { server, reporter, push } = await setUp({ requestTimeoutMs: 60_000 });
    server.script.push('ok', 'stall');
    push(1);
    push(1);
    push(1);
    await vi.waitFor(() => expect(server.calls).toBe(2));
    await reporter.flush(50);
    expect(reporter.stats()).toMatchObject({ samplesSent: 4, samplesDroppedStop: 8, samplesQueued: 0 });
  });
});
