import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { status as grpcStatus } from '@grpc/grpc-js';
import { afterAll, expect, it } from 'vitest';
import { encodeOtlp } from '../../test/browser/encode-otlp.ts';
import { Pusher } from '../../test/browser/push.ts';
import { profileFromText } from '../../test/browser/synthetic-profile.ts';
import { type Collector, type CollectorOptions, startCollector } from '../main.ts';
import { partFor } from './tenant.ts';

const folder = mkdtempSync(join(tmpdir(), 'everyframe-tenants-'));
afterAll(() => rmSync(folder, { recursive: true }));
writeFileSync(join(folder, 'index.html'), '<!doctype html>');

const logger = { info: () => {}, warn: () => {}, error: () => {} };
const TOKENS = { shop: 'shop-token-0123456789', bank: 'bank-token-0123456789' };
type Name = keyof typeof TOKENS;
const NAMES: Name[] = ['shop', 'bank'];
const tenant = NAMES.map((name) => ({ name, tokenFile: join(folder, `${name}.token`) }));
for (const { name, tokenFile } of tenant) writeFileSync(tokenFile, TOKENS[name as Name]);

const start = (changes: Partial<CollectorOptions> = {}): Promise<Collector> =>
  startCollector({
    grpcListen: '127.0.0.1:0',
    httpListen: '127.0.0.1:0',
    pageListen: '127.0.0.1:0',
    maxMemoryBytes: 2 ** 26,
    pageDirectory: folder,
    access: { tenant },
    logger,
    ...changes,
  });

const authorize = (name: Name): { authorization: string } => ({ authorization: `Bearer ${TOKENS[name]}` });
const requestOf = (text: string): Buffer =>
  encodeOtlp(profileFromText(text, { endMs: Date.now(), spanMs: 2000 }));

async function pushAs(collector: Collector, name: Name, text: string): Promise<void> {
  const pusher = new Pusher(collector.urls.grpc, authorize(name));
  await pusher.push(requestOf(text)).finally(() => pusher.close());
}
// biome-ignore lint/suspicious/noExplicitAny: what is in it is what is tested
const askAs = async (collector: Collector, name: Name, path: string): Promise<any> =>
  (await fetch(new URL(path, collector.urls.page), { headers: authorize(name) })).json();
const samplesOf = async (collector: Collector, name: Name): Promise<number> =>
  (await askAs(collector, name, '/api/v1/tree')).samples;

it('shows each tenant what came with its token, and nothing of the others', async () => {
  const collector = await start();
  await pushAs(collector, 'shop', 'till:1;main@n;pay@n 6');
  const posted = await fetch(collector.urls.http, {
    method: 'POST',
    headers: { 'content-type': 'application/x-protobuf', ...authorize('bank') },
    body: new Uint8Array(requestOf('vault:2;main@n;count@n 4')),
  });
  expect(posted.status).toBe(200);
  expect(await samplesOf(collector, 'shop')).toBe(6);
  expect(await samplesOf(collector, 'bank')).toBe(4);
  // the same question, which both have just been answered
  expect(await askAs(collector, 'shop', '/api/v1/values?label=process')).toMatchObject({
    values: [{ value: 'till', samples: 6 }],
  });
  const shop = await askAs(collector, 'shop', '/api/v1/status');
  expect(shop).toMatchObject({
    tenant: 'shop',
    requests: { accepted: 1, refused: 0 },
    samples: { stored: 6 },
  });
  expect(shop).not.toHaveProperty('connections');
  await collector.stop();
});

it('counts what nobody sent apart from every tenant', async () => {
  const collector = await start();
  const stranger = new Pusher(collector.urls.grpc, { authorization: 'Bearer shop-token-012345678' });
  await expect(stranger.push(requestOf('x:1;main@n 1'))).rejects.toMatchObject({
    code: grpcStatus.UNAUTHENTICATED,
  });
  stranger.close();
  expect((await fetch(collector.urls.page)).status).toBe(401);
  expect((await fetch(new URL('/readyz', collector.urls.page))).status).toBe(200);
  const status = collector.status();
  expect(status.unauthenticated).toBe(1);
  expect(status.tenants.map(({ requests }) => requests)).toEqual(
    NAMES.map(() => ({ accepted: 0, refused: 0, repeated: 0 })),
  );
  await collector.stop();
});

it('keeps each tenant on disk in a place of its own, also for the next start', async () => {
  const data = { directory: join(folder, 'data'), maxBytes: 2 ** 26 };
  const first = await start({ data });
  await pushAs(first, 'shop', 'till:1;main@n 3');
  await first.stop();
  const second = await start({ data });
  expect([await samplesOf(second, 'shop'), await samplesOf(second, 'bank')]).toEqual([3, 0]);
  await second.stop();
  expect(existsSync(join(data.directory, 'tenant-shop'))).toBe(true);
}, 30_000);

it('gives each an equal part of the room, a place, and the age that it has', () => {
  const options = {
    maxMemoryBytes: 100,
    maxAgeMs: 5,
    tenantMaxAge: [{ name: 'shop', maxAgeMs: 7 }],
    data: { directory: '/d', maxBytes: 1000 },
    logger,
  };
  expect(partFor('shop', 2, options)).toMatchObject({
    maxMemoryBytes: 50,
    maxAgeMs: 7,
    data: { directory: '/d/tenant-shop', maxBytes: 500 },
  });
  expect(partFor('bank', 2, options)).toMatchObject({ maxAgeMs: 5, data: { directory: '/d/tenant-bank' } });
  expect(partFor('', 1, options)).toBe(options);
});

it.each([
  ['http://u:p@db:8123/profiles', 'http://u:p@db:8123/profiles_shop'],
  ['http://db:8123', 'http://db:8123/default_shop'],
])('keeps a tenant of ClickHouse at %s in %s', (clickhouse, database) => {
  expect(partFor('shop', 2, { maxMemoryBytes: 1, clickhouse, logger }).clickhouse).toBe(database);
});
