import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Long from 'long';
import { afterAll, afterEach, expect, it, vi } from 'vitest';
import type { FlameGraphResponse } from '../../common/flame/tree-answer.ts';
import { encodeCounters } from '../../common/profile/otlp/otlp-metrics.ts';
import { GrpcClient } from '../../otlp-client/grpc-client.ts';
import { encodeOtlp, otlpRequest } from '../../test/browser/encode-otlp.ts';
import { Pusher } from '../../test/browser/push.ts';
import { profileFromText } from '../../test/browser/synthetic-profile.ts';
import type { SamplesAnswer } from '../api/types.ts';
import { type Collector, type CollectorOptions, startCollector } from '../main.ts';
import type { StatusResponse } from '../status/status.ts';
import { forwardOptions } from './forward-options.ts';

const directory = mkdtempSync(join(tmpdir(), 'everyframe-forward-'));
writeFileSync(join(directory, 'index.html'), '<!doctype html>');
afterAll(() => rmSync(directory, { recursive: true }));

const running: { stop(): unknown }[] = [];
afterEach(async () => {
  for (const each of running.splice(0).reverse()) await each.stop();
});

const lines: string[] = [];
const log = (text: unknown): void => void lines.push(String(text));
const logger = { info: log, warn: log, error: log };
const QUEUE = 2 ** 26;

async function start(changes: Partial<CollectorOptions> = {}): Promise<Collector> {
  const anyPort = { grpcListen: '127.0.0.1:0', httpListen: '127.0.0.1:0', pageListen: '127.0.0.1:0' };
  const options = { ...anyPort, maxMemoryBytes: 2 ** 26, pageDirectory: directory, logger, ...changes };
  const collector = await startCollector(options);
  running.push(collector);
  return collector;
}

/** A collector whose senders' profiles reach a second one. */
async function pair(
  forward: Partial<CollectorOptions['forward']> = {},
  second: Partial<CollectorOptions> = {},
) {
  const far = await start(second);
  const near = await start({ forward: { to: far.urls.grpc, maxQueueBytes: QUEUE, ...forward } });
  const pusher = new Pusher(near.urls.grpc);
  running.push({ stop: () => pusher.close() });
  return { near, far, push: (text: string) => pusher.push(encodeOtlp(profileOf(text))) };
}

const NOW = Date.now();
const profileOf = (text: string) => profileFromText(text, { endMs: NOW, spanMs: 2000 });
const query = async <T>({ urls }: Collector, path: string): Promise<T> =>
  (await (await fetch(new URL(`/api/v1/${path}`, urls.page))).json()) as T;
const forwarded = async (collector: Collector) => (await query<StatusResponse>(collector, 'status')).forward!;
const untilForwarded = (near: Collector, samples: object): Promise<void> =>
  vi.waitFor(async () => expect((await forwarded(near)).samples).toMatchObject(samples), 15_000);

/** All that is to be seen of what a collector holds. */
async function contentOf(collector: Collector): Promise<unknown> {
  const range = `from=${NOW - 60_000}&to=${NOW + 60_000}`;
  const { timeline, ...tree } = await query<FlameGraphResponse>(collector, `tree?${range}`);
  const samples = await query<SamplesAnswer>(collector, `samples?${range}&limit=1000`);
  return { timeline, tree, samples };
}

it('passes on every sample once, whichever way it came, so that both collectors show the same', async () => {
  const { near, far, push } = await pair();
  await push('grpc-sh:10;main@n;write@n;vfs_write@k 6\ngrpc-sh:11;main@n 4');
  await push('grpc-sh:10;main@n;write@n;vfs_write@k 6\ngrpc-sh:11;main@n 4');
  const post = (body: string | Uint8Array<ArrayBuffer>, type: string) =>
    fetch(near.urls.http, { method: 'POST', body, headers: { 'content-type': type } });
  await post(new Uint8Array(encodeOtlp(profileOf('http:1;a@n;b@n 5'))), 'application/x-protobuf');
  const { resourceProfiles, dictionary } = otlpRequest(profileOf('json:1;c@j 7'));
  const text = JSON.stringify({ resourceProfiles, dictionary }, (_, value) =>
    value && typeof value === 'object' && 'unsigned' in value ? Long.fromValue(value).toString() : value,
  );
  await post(text, 'application/json');
  await untilForwarded(near, { received: 22, sent: 22, waiting: 0, lost: 0 });
  expect(far.tenants[0]!.store.stats().samples).toBe(22);
  expect(await contentOf(far)).toEqual(await contentOf(near));
  expect((await forwarded(far)) ?? 'none').toBe('none');
});

it('passes on what this collector can not show, and what is wrong: the receiver judges for itself', async () => {
  const { near, far } = await pair();
  const pusher = new Pusher(near.urls.grpc);
  const request = encodeOtlp(profileOf('p:1;a@n 5\np:1;b@n 3'), ({ resourceProfiles }) => {
    resourceProfiles[0]!.scopeProfiles[0]!.profiles[0]!.samples[1]!.stackIndex = 999;
  });
  await pusher.push(request);
  pusher.close();
  await vi.waitFor(() => expect(far.tenants[0]!.store.stats().samples).toBe(5), 15_000);
  expect((await query<StatusResponse>(far, 'status')).samples).toMatchObject({ stored: 5, rejected: 3 });
  await untilForwarded(near, { received: 8, waiting: 0 });
});

it('outlives a receiver that rejects a part of what has texts that are not UTF-8', async () => {
  const { near, push } = await pair();
  const pusher = new Pusher(near.urls.grpc);
  const request = Buffer.from(
    encodeOtlp(profileOf('p:1;€@n 5'), ({ resourceProfiles }) => {
      resourceProfiles[0]!.scopeProfiles[0]!.profiles[0]!.samples[0]!.stackIndex = 999;
    }),
  );
  request.fill(0xff, request.indexOf('€'), request.indexOf('€') + 3);
  await pusher.push(request);
  pusher.close();
  await push('p:1;a@n 3');
  await untilForwarded(near, { received: 8, sent: 3, waiting: 0, lost: 5 });
});

async function reportCounters(address: string): Promise<void> {
  const report = {
    resource: { 'service.name': 'everyframe-agent', 'service.version': '1', 'host.name': 'web-1' },
    startMs: NOW - 9000,
    timeMs: NOW,
    counters: { 'everyframe.agent.bpf.samples': 70 },
  };
  const bytes = encodeCounters(report, { scopeName: 'everyframe', scopeVersion: '' }, () => false);
  const client = new GrpcClient({ address, tls: undefined, headers: [], compression: 'none' });
  const path = '/opentelemetry.proto.collector.metrics.v1.MetricsService/Export';
  await new Promise((resolve) => client.call(path, bytes, 10_000, resolve));
  client.close();
}

it('passes on what agents count of themselves', async () => {
  const { near, far } = await pair();
  await reportCounters(near.urls.grpc);
  await vi.waitFor(async () => {
    const { agents } = await query<StatusResponse>(far, 'status');
    expect(agents).toMatchObject([{ host: 'web-1', counters: { 'bpf.samples': 70 } }]);
  }, 60_000);
  expect(await forwarded(near)).toMatchObject({ counterReports: { sent: 1, lost: 0 } });
});

it('keeps what arrives while the receiver is away, and passes it on when it is back', async () => {
  const { near, far, push } = await pair();
  await push('p:1;a@n 5');
  await untilForwarded(near, { sent: 5 });
  await far.stop();
  for (let i = 0; i < 20; i++) await push(`p:1;a@n;f${i}@n 3`);
  await vi.waitFor(async () => expect((await forwarded(near)).requests.retried).toBeGreaterThan(0), 15_000);
  expect((await forwarded(near)).samples).toEqual({ received: 65, sent: 5, waiting: 60, lost: 0 });
  expect(near.tenants[0]!.store.stats().samples).toBe(65);
  const back = await start({ grpcListen: far.urls.grpc });
  await untilForwarded(near, { sent: 65, waiting: 0, lost: 0 });
  expect(back.tenants[0]!.store.stats().samples).toBe(60);
  expect(lines.filter((line) => line.startsWith(far.urls.grpc))).toEqual([
    expect.stringMatching(/can't be reached .* the oldest are dropped first/),
    expect.stringMatching(/is back after/),
  ]);
});

it('drops the oldest where there is no room for what waits, and counts them', async () => {
  const { near, far, push } = await pair({ maxQueueBytes: 4000 });
  await far.stop();
  for (let i = 0; i < 30; i++) await push(`p:1;a@n;f${i}@n 3`);
  const { samples, losses } = await forwarded(near);
  expect(samples.lost).toBeGreaterThan(0);
  expect(samples.received).toBe(90);
  expect(samples.sent + samples.waiting + samples.lost).toBe(90);
  expect(losses).toEqual([{ reason: expect.stringContaining('the oldest went'), count: samples.lost }]);
  await start({ grpcListen: far.urls.grpc });
  await untilForwarded(near, { sent: samples.waiting, waiting: 0, lost: samples.lost });
});

it('sends what still waits when it is stopped', async () => {
  const { near, far, push } = await pair();
  await Promise.all(Array.from({ length: 20 }, (_, i) => push(`p:1;a@n;f${i}@n 3`)));
  await near.stop();
  expect(far.tenants[0]!.store.stats().samples).toBe(60);
});

it('ends a loop of collectors that pass on to each other, with as many samples as there were', async () => {
  const first = await start();
  const { port } = new URL(`http://${first.urls.grpc}`);
  await first.stop();
  const to = `127.0.0.1:${port}`;
  const self = await start({ grpcListen: to, forward: { to, maxQueueBytes: QUEUE } });
  const pusher = new Pusher(to);
  await pusher.push(encodeOtlp(profileOf('p:1;a@n 5')));
  pusher.close();
  await untilForwarded(self, { received: 5, sent: 5, waiting: 0 });
  expect(self.tenants[0]!.store.stats().samples).toBe(5);
  expect((await query<StatusResponse>(self, 'status')).requests).toMatchObject({ accepted: 1, repeated: 1 });
  await reportCounters(to);
  await new Promise((resolve) => setTimeout(resolve, 1000));
  expect((await forwarded(self)).counterReports).toEqual({ sent: 1, lost: 0 });
});

it('speaks TLS with an authority and a token', async () => {
  const [cert, key] = [join(directory, 'cert.pem'), join(directory, 'key.pem')];
  const name = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'];
  const made = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', ...name];
  execFileSync('openssl', ['req', '-x509', ...made, '-keyout', key, '-out', cert], { stdio: 'ignore' });
  const tokenFile = join(directory, 'token');
  writeFileSync(tokenFile, 'f00dfacef00dface');
  const headersFile = join(directory, 'headers');
  writeFileSync(headersFile, 'authorization=Bearer f00dfacef00dface\n');
  const far = await start({ access: { tlsCert: cert, tlsKey: key, tokenFile } });
  const to = `https://${far.urls.grpc}`;
  const near = await start({ forward: { to, tlsCa: cert, headersFile, maxQueueBytes: QUEUE } });
  const pusher = new Pusher(near.urls.grpc);
  await pusher.push(encodeOtlp(profileOf('tls:1;main@n 2')));
  pusher.close();
  await untilForwarded(near, { sent: 2, lost: 0 });
  expect(far.tenants[0]!.store.stats().samples).toBe(2);
});

it.each([
  ['collector:4317', true],
  ['127.0.0.1:4317', false],
  ['[::1]:4317', false],
  ['localhost:4317', false],
  ['http://collector:4317', false],
  ['https://localhost:4317', true],
])('reads %s: TLS %s', (to, tls) => {
  expect(forwardOptions({ to, maxQueueBytes: QUEUE }, {}).tls !== undefined).toBe(tls);
});

it.each([
  [{ to: 'nowhere' }, '--forward-to is "nowhere": give host:port'],
  [{ to: 'h:1', tlsCa: '/nowhere' }, "can't read /nowhere, which --forward-tls-ca names"],
  [{ to: 'h:1', headersFile: '/nowhere' }, "can't read /nowhere, which --forward-headers-file names"],
  [{ to: 'http://h:1', tlsCa: '/nowhere' }, '--forward-tls-ca has no use for http://h:1'],
])('says what is wrong with %j', async (forward, message) => {
  await expect(start({ forward: { ...forward, maxQueueBytes: QUEUE } })).rejects.toThrow(message);
});
