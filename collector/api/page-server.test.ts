import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type OutgoingHttpHeaders, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FlameGraphResponse } from '../../common/flame/tree-answer.ts';
import { profileFromText } from '../../test/browser/synthetic-profile.ts';
import { ReceiverStats } from '../ingest/receiver-stats.ts';
import { Access } from '../net/access.ts';
import { readPageFiles } from '../net/page-files.ts';
import { SOLE_TENANT } from '../settings/tenants.ts';
import type { StatusResponse } from '../status/status.ts';
import { MemoryStore } from '../store/memory/memory-store.ts';
import { PartDropped, type Store, type TimeRange } from '../store/store.ts';
import { SymbolSources } from '../symbols/symbol-sources.ts';
import { startPageServer } from './page-server.ts';
import type { ShownTenant } from './tenant-page.ts';
import type { ValuesAnswer } from './types.ts';

const directory = mkdtempSync(join(tmpdir(), 'everyframe-page-'));
let server: Awaited<ReturnType<typeof startPageServer>>;

const sole = (tenant: ShownTenant): Map<string, ShownTenant> => new Map([[SOLE_TENANT, tenant]]);

beforeAll(async () => {
  writeFileSync(join(directory, 'index.html'), '<!doctype html><title>page</title>');
  writeFileSync(join(directory, 'main-ABCDEF12.js'), `/*${'x'.repeat(5000)}*/`);
  writeFileSync(join(directory, 'main.js.map'), 'not served');
  const now = Date.now;
  const store = new MemoryStore({ maxBytes: 2 ** 26, maxAgeMs: 3_600_000, now });
  const text = 'sh:10;main@n;write@n;vfs_write@k 6\nnode:12;main@n;render@j 4';
  store.append(profileFromText(text, { endMs: now(), spanMs: 1000 }));
  server = await startPageServer({
    listen: { host: '127.0.0.1', port: 0 },
    files: readPageFiles(directory),
    tenants: sole({
      status: { stats: new ReceiverStats(), store, listen: { grpc: 'g', http: 'h' }, startedMs: now() },
      symbols: new SymbolSources(undefined, { error: expect.fail }),
    }),
    now,
    logger: { error: (message: unknown) => expect.fail(`logged ${JSON.stringify(message)}`) },
  });
});

afterAll(async () => {
  await server.stop();
  rmSync(directory, { recursive: true });
});

const get = (path: string, init?: RequestInit): Promise<Response> =>
  fetch(`http://127.0.0.1:${server.port}${path}`, init);

describe('the page server', () => {
  it('serves the page with a policy that keeps it to itself', async () => {
    const response = await get('/');
    expect(await response.text()).toContain('<title>page</title>');
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(response.headers.get('content-security-policy')).toMatch(/default-src 'none'.*script-src 'self'/);
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
    expect(response.headers.get('cache-control')).toBe('no-cache');
  });

  it('lets what is named by its content be kept, and compresses it', async () => {
    const response = await get('/main-ABCDEF12.js');
    expect(response.headers.get('cache-control')).toContain('immutable');
    expect(response.headers.get('content-encoding')).toBe('gzip');
    expect((await response.text()).length).toBe(5004);
  });

  it('answers the flame graph in columns', async () => {
    const graph = (await (await get('/api/v1/tree?range=60s')).json()) as FlameGraphResponse;
    const names = graph.nodes.frame.map((frame) => graph.strings[graph.frames.name[frame]!]);
    expect(names).toEqual(['all', 'node', 'sh', 'main', 'main', 'render', 'write', 'vfs_write']);
    expect(graph.nodes.parent).toEqual([0, 0, 0, 1, 2, 3, 4, 6]);
    expect(graph.nodes.self).toEqual([0, 0, 0, 0, 0, 4, 0, 6]);
    expect(graph.kinds[graph.frames.kind[graph.nodes.frame[7]!]!]).toBe('kernel');
    expect(graph).toMatchObject({ samples: 10, allSamples: 10, cpuNanos: 500_000_000, cpus: 2 });
    expect(graph.timeline.reduce((a, b) => a + b)).toBe(10);
  });

  it('filters by process', async () => {
    const graph = (await (
      await get('/api/v1/tree?range=all&where=process%3Dsh')
    ).json()) as FlameGraphResponse;
    expect(graph).toMatchObject({ samples: 6, allSamples: 10 });
    const none = (await (await get('/api/v1/tree?where=process%3Dnothing')).json()) as FlameGraphResponse;
    expect(none).toMatchObject({ samples: 0, nodes: { self: [0] } });
  });

  it('lists processes and shows its status', async () => {
    const { values } = (await (await get('/api/v1/values?label=process')).json()) as ValuesAnswer;
    expect(values).toEqual([
      { value: 'sh', samples: 6, processes: 1 },
      { value: 'node', samples: 4, processes: 1 },
    ]);
    const status = (await (await get('/api/v1/status')).json()) as StatusResponse;
    expect(status).toMatchObject({
      listen: { grpc: 'g' },
      requests: { accepted: 0 },
      store: { samples: 10 },
    });
  });

  it.each([
    ['/api/v1/tree?range=1y', 400, 'range is "1y": write a time such as 60s'],
    ['/api/v1/nothing', 404, 'nothing at /api/v1/nothing: /api/v1/openapi.json lists what there is'],
    ['/../../etc/passwd', 404, 'nothing at /etc/passwd'],
    ['/main.js.map', 404, 'nothing at'],
  ])('answers %s with %i and a sentence', async (path, httpStatus, sentence) => {
    const response = await get(path);
    expect(response.status).toBe(httpStatus);
    expect(((await response.json()) as { error: string }).error).toContain(sentence);
  });

  it('refuses to be written to', async () => {
    expect((await get('/api/v1/status', { method: 'POST' })).status).toBe(405);
  });

  it('refuses names that a foreign page could have brought about', async () => {
    const { status, body } = await getWith({ host: 'attacker.example:11080' });
    expect(status).toBe(421);
    expect(JSON.parse(body).error).toContain('"attacker.example:11080" is not a name of this server');
    expect((await getWith({ host: 'localhost' })).status).toBe(200);
  });

  it('works for no foreign page, which could not read the answer but have it made', async () => {
    const image = { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'image' };
    const { status, body } = await getWith(image);
    expect([status, JSON.parse(body).error]).toEqual([403, expect.stringContaining('another site')]);
    expect((await getWith({ ...image, 'sec-fetch-dest': 'document' })).status).toBe(200);
    expect((await getWith({ ...image, 'sec-fetch-site': 'same-origin' })).status).toBe(200);
    expect((await getWith(image, '/')).status).toBe(200);
  });

  it('repeats no more than the beginning of what was asked', async () => {
    const { error } = (await (await get(`/api/v1/export?format=${'x'.repeat(10_000)}`)).json()) as {
      error: string;
    };
    expect(error.length).toBe(1000);
  });

  it('refuses an address that is none', async () => {
    expect((await getWith({}, '//')).status).toBe(400);
  });
});

function getWith(
  headers: OutgoingHttpHeaders,
  path = '/api/v1/status',
  port = server.port,
): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path, headers };
    const outgoing = request(options, (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        body += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode!, body }));
    });
    outgoing.on('error', reject).end();
  });
}

it('answers to any name where a token is asked for, as behind a Service or an Ingress', async () => {
  const token = '0123456789abcdef';
  const store = new MemoryStore({ maxBytes: 2 ** 26, maxAgeMs: 3_600_000, now: Date.now });
  const other = await startPageServer({
    listen: { host: '127.0.0.1', port: 0 },
    files: readPageFiles(directory),
    tenants: sole({
      status: { stats: new ReceiverStats(), store, listen: { grpc: 'g', http: 'h' }, startedMs: 0 },
      symbols: new SymbolSources(undefined, { error: expect.fail }),
    }),
    access: new Access(undefined, token),
    now: Date.now,
    logger: { error: expect.fail },
  });
  const host = 'everyframe-collector.everyframe:11080';
  const authorization = `Bearer ${token}`;
  expect((await getWith({ host, authorization }, '/api/v1/status', other.port)).status).toBe(200);
  // a page that has its own name point here has no token to send
  expect((await getWith({ host: 'attacker.example' }, '/', other.port)).status).toBe(401);
  await other.stop();
});

it('answers without what retention drops while it reads, and not with a half of it', async () => {
  const now = Date.now;
  const store = new MemoryStore({ maxBytes: 2 ** 26, maxAgeMs: 3_600_000, now });
  store.append(profileFromText('p:1;kept@n 7', { endMs: now(), spanMs: 1 }));
  const [part] = await store.parts({ fromMs: 0, toMs: Number.MAX_SAFE_INTEGER });
  let asked = 0;
  const dropping = {
    stats: () => store.stats(),
    parts: async () => {
      const { startMs, endMs, groups } = part!;
      const rows = () => Promise.reject(new PartDropped());
      const dropped = {
        startMs,
        endMs,
        groups,
        rows,
        series: () => part!.series(),
        stacks: () => part!.stacks(),
      };
      return asked++ === 0 ? [part!, dropped] : [part!];
    },
  };
  const status = {
    stats: new ReceiverStats(),
    store: dropping as unknown as Store,
    listen: { grpc: 'g', http: 'h' },
  };
  const symbols = new SymbolSources(undefined, { error: expect.fail });
  const other = await startPageServer({
    listen: { host: '127.0.0.1', port: 0 },
    files: readPageFiles(directory),
    tenants: sole({ status: { ...status, startedMs: now() }, symbols }),
    now,
    logger: { error: (message: unknown) => expect.fail(`logged ${JSON.stringify(message)}`) },
  });
  const response = await fetch(`http://127.0.0.1:${other.port}/api/v1/tree?range=all`);
  expect(await response.json()).toMatchObject({ samples: 7, allSamples: 7 });
  expect(asked).toBe(2);
  await other.stop();
});

/** A server of its own, of a store that answers slowly. */
const serve = (store: Store) =>
  startPageServer({
    listen: { host: '127.0.0.1', port: 0 },
    files: readPageFiles(directory),
    tenants: sole({
      status: { stats: new ReceiverStats(), listen: { grpc: 'g', http: 'h' }, startedMs: Date.now(), store },
      symbols: new SymbolSources(undefined, { error: expect.fail }),
    }),
    now: Date.now,
    logger: { error: (message: unknown) => expect.fail(`logged ${JSON.stringify(message)}`) },
  });

it('answers all who ask the same while the answer is made once, however long that takes', async () => {
  const now = Date.now;
  const store = new MemoryStore({ maxBytes: 2 ** 26, maxAgeMs: 3_600_000, now });
  store.append(profileFromText('p:1;main@n 7', { endMs: now(), spanMs: 1 }));
  let asked = 0;
  const slow = {
    stats: () => store.stats(),
    types: (range: TimeRange) => store.types(range),
    parts: async (range: TimeRange) => {
      asked++;
      await sleep(1500);
      return store.parts(range);
    },
  };
  const other = await serve(slow as unknown as Store);
  const ask = async (afterMs: number): Promise<ValuesAnswer> => {
    await sleep(afterMs);
    const url = `http://127.0.0.1:${other.port}/api/v1/values?label=kind&range=all`;
    return (await (await fetch(url)).json()) as ValuesAnswer;
  };
  const answers = await Promise.all([ask(0), ask(1200), ask(1800)]);
  for (const { samples } of answers) expect(samples).toBe(7);
  expect(asked).toBe(1);
  await other.stop();
});

it('makes few files at a time, and says when to come again where many wait', async () => {
  const now = Date.now;
  const store = new MemoryStore({ maxBytes: 2 ** 26, maxAgeMs: 3_600_000, now });
  store.append(profileFromText('p:1;main@n 7', { endMs: now(), spanMs: 1 }));
  const gates: (() => void)[] = [];
  let isOpen = false;
  const slow = {
    stats: () => store.stats(),
    types: (range: TimeRange) => store.types(range),
    parts: async (range: TimeRange) => {
      if (!isOpen) await new Promise<void>((resolve) => gates.push(resolve));
      return store.parts(range);
    },
  };
  const other = await serve(slow as unknown as Store);
  const ask = (): Promise<Response> =>
    fetch(`http://127.0.0.1:${other.port}/api/v1/export?format=folded&range=all`);
  const asked = Array.from({ length: 20 }, ask);
  const refused = await Promise.any(asked);
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '10']);
  expect(await refused.json()).toEqual({ error: '16 exports wait for their turn: ask again later' });
  expect(gates.length).toBe(2);
  isOpen = true;
  for (const open of gates) open();
  const statuses = (await Promise.all(asked)).map(({ status }) => status).sort();
  expect(statuses).toEqual([...Array<number>(18).fill(200), 503, 503]);
  await other.stop();
});
