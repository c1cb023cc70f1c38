import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '@clickhouse/client';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { startCollector } from '../../collector/main.ts';
import { readValues } from '../../collector/query/values.ts';
import { readWindow } from '../../collector/query/window.ts';
import { readColumns } from '../../collector/store/clickhouse/clickhouse-reader.ts';
import { ClickHouseStore } from '../../collector/store/clickhouse/clickhouse-store.ts';
import { StoreUnavailable } from '../../collector/store/store.ts';
import { encodeOtlp } from '../browser/encode-otlp.ts';
import { Pusher } from '../browser/push.ts';
import { profileFromText } from '../browser/synthetic-profile.ts';
import { testStoreThatLasts } from '../support/store-contract.ts';
import { linkedProfile, testLinks } from '../support/store-links.ts';
import { typedProfile } from '../support/typed-profile.ts';
import { type ChdbServer, startChdbServer } from './chdb-server.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** The server has a clock of its own; noon, since days are dropped whole. */
const START_MS = Math.floor(Date.now() / DAY) * DAY + DAY / 2;
let nowMs = START_MS;
const now = (): number => nowMs;
const errors: string[] = [];
const logger = { info: () => {}, error: (...what: unknown[]) => void errors.push(JSON.stringify(what)) };
const data = mkdtempSync(join(tmpdir(), 'everyframe-chdb-'));
let server: ChdbServer;

const COLLECTOR = {
  ...{ grpcListen: '127.0.0.1:0', httpListen: '127.0.0.1:0', pageListen: '127.0.0.1:0' },
  ...{ maxMemoryBytes: 2 ** 26, pageDirectory: data },
  logger: { ...logger, info: () => {}, warn: () => {} },
};

beforeAll(async () => {
  writeFileSync(join(data, 'index.html'), '<!doctype html>');
  server = await startChdbServer(process.env['CHDB_FOLDER']!, join(data, 'engine'));
});
afterAll(() => {
  server.stop();
  rmSync(data, { recursive: true });
});

function makeDatabase(): string {
  const name = `test_${randomBytes(6).toString('hex')}`;
  server.run(`CREATE DATABASE ${name}`);
  return name;
}
const open = (database: string, base = server.url): Promise<ClickHouseStore> =>
  ClickHouseStore.open({ url: `${base}/${database}`, maxAgeMs: 2 * DAY, now, logger });
const everything = () => ({ fromMs: nowMs - 10 * DAY, toMs: nowMs + HOUR, where: [] });
const samplesIn = async (store: ClickHouseStore): Promise<number> =>
  (await readWindow(store, everything(), 1)).samples;

describe('ClickHouseStore', () => {
  testStoreThatLasts(now, () => {
    const database = makeDatabase();
    return { open: () => open(database) };
  });

  testLinks(now, () => {
    const database = makeDatabase();
    return { open: () => open(database) };
  });

  it('takes samples with links into a database of the version without them, and reads what it has', async () => {
    const database = makeDatabase();
    const old = await open(database);
    old.append(profileFromText('p:1;a@n 5', { endMs: nowMs, spanMs: 1 }));
    await old.close();
    for (const sql of [
      `DROP TABLE ${database}.links`,
      `ALTER TABLE ${database}.samples DROP COLUMN link`,
      `DELETE FROM ${database}.meta WHERE schema_version = 5`,
    ])
      server.run(sql);
    const store = await open(database);
    const link = { traceId: 'ab'.repeat(16), spanId: 'cd'.repeat(8) };
    store.append(linkedProfile('p:1;a@n 4', nowMs, link));
    await store.commit();
    expect(await readValues(store, everything(), 'trace_id')).toEqual([
      { value: '', samples: 5 },
      { value: link.traceId, samples: 4 },
    ]);
    await store.close();
  });

  it('is shared by collectors: each reads what the others wrote', async () => {
    const database = makeDatabase();
    const [one, two] = [await open(database), await open(database)];
    one.append(profileFromText('p:1;a@n 5', { endMs: nowMs, spanMs: 1 }));
    await one.commit();
    two.append(profileFromText('q:2;b@n 7', { endMs: nowMs, spanMs: 1 }));
    expect([await samplesIn(two), await samplesIn(one)]).toEqual([12, 12]);
    one.append(profileFromText('p:1;c@n 2', { endMs: nowMs, spanMs: 1 }));
    await one.commit();
    expect([await samplesIn(two), await samplesIn(one)]).toEqual([14, 14]);
    await one.close();
    await two.close();
  }, 60_000);

  it('writes once what the server took without an answer', async () => {
    const database = makeDatabase();
    const proxy = await startProxy();
    const store = await open(database, proxy.url);
    store.append(profileFromText('p:1;a@n 5\np:1;b@n 3', { endMs: nowMs, spanMs: 1 }));
    proxy.cutAfter = /INSERT INTO samples/;
    await expect(store.commit()).rejects.toThrow('nothing can be written');
    proxy.cutAfter = undefined;
    store.append(profileFromText('p:1;b@n;c@n 2', { endMs: nowMs, spanMs: 1 }));
    await vi.waitFor(() => store.commit(), 20_000);
    expect(await samplesIn(store)).toBe(10);
    expect(server.run(`SELECT sum(weight) FROM ${database}.samples`).trim()).toBe('10');
    expect(errors.splice(0)).toEqual([expect.stringContaining('samples could not be written')]);
    await store.close();
    proxy.stop();
  }, 60_000);

  it('drops whole days, and counts what was in them', async () => {
    const database = makeDatabase();
    const store = await open(database);
    for (const days of [1.5, 0.25]) {
      nowMs = START_MS - days * DAY;
      store.append(profileFromText('p:1;a@n 10', { endMs: nowMs, spanMs: 1 }));
    }
    nowMs = START_MS;
    await store.close();
    nowMs = START_MS + 2 * DAY;
    const later = await open(database);
    expect(later.stats()).toMatchObject({ samples: 10, droppedForAge: 10 });
    await later.close();
    nowMs = START_MS;
  }, 60_000);

  it('keeps what a collector receives, also for the next one', async () => {
    const clickhouse = `${server.url}/${makeDatabase()}`;
    const request = encodeOtlp(profileFromText('p:1;main@n;a@k 6', { endMs: Date.now(), spanMs: 1000 }));
    for (const repeated of [0, 1]) {
      const collector = await startCollector({ ...COLLECTOR, clickhouse });
      const pusher = new Pusher(collector.urls.grpc);
      await pusher.push(request);
      pusher.close();
      const answer = await fetch(new URL('/api/v1/health', collector.urls.page));
      expect(await answer.json()).toMatchObject({ samples: 6, status: { requests: { repeated } } });
      await collector.stop();
    }
    const secret = startCollector({ ...COLLECTOR, clickhouse: 'http://me:s3cret@127.0.0.1:1/x' });
    await expect(secret).rejects.toThrow(/^--clickhouse: 127\.0\.0\.1:1 can't be used: (?!.*s3cret)/);
  }, 60_000);

  it('keeps tenants apart, each in its own database', async () => {
    const database = makeDatabase();
    const tenant = ['shop', 'bank'].map((name) => ({ name, tokenFile: join(data, `${name}.token`) }));
    for (const { name, tokenFile } of tenant) {
      server.run(`CREATE DATABASE ${database}_${name}`);
      writeFileSync(tokenFile, `${name}-token-0123456789`);
    }
    const collector = await startCollector({
      ...COLLECTOR,
      clickhouse: `${server.url}/${database}`,
      access: { tenant },
    });
    const pusher = new Pusher(collector.urls.grpc, { authorization: 'Bearer shop-token-0123456789' });
    await pusher.push(encodeOtlp(profileFromText('p:1;main@n 6', { endMs: Date.now(), spanMs: 1000 })));
    pusher.close();
    const answers = tenant.map(async ({ name }) => {
      const headers = { authorization: `Bearer ${name}-token-0123456789` };
      return (await fetch(new URL('/api/v1/health', collector.urls.page), { headers })).json();
    });
    expect(await Promise.all(answers)).toMatchObject([{ samples: 6 }, { samples: 0 }]);
    await collector.stop();
  }, 60_000);

  it('takes what a database of the version without types holds for CPU samples', async () => {
    const database = makeDatabase();
    const old = await open(database);
    old.append(profileFromText('p:1;a@n 5', { endMs: nowMs, spanMs: 1 }));
    await old.close();
    for (const sql of [
      `DROP TABLE ${database}.types`,
      `DROP VIEW ${database}.parts_of_samples`,
      `ALTER TABLE ${database}.parts DROP COLUMN row_count`,
      `CREATE MATERIALIZED VIEW ${database}.parts_of_samples TO ${database}.parts AS SELECT part, start, sum(weight) AS events,
        min(t) AS min_t, max(t) AS max_t FROM ${database}.samples GROUP BY part, start`,
      `DELETE FROM ${database}.meta WHERE schema_version >= 4`,
    ])
      server.run(sql);
    const store = await open(database);
    const sampleType = { type: 'off_cpu', unit: 'nanoseconds' };
    store.append(typedProfile('p:1;w@k 7000000000', { sampleType, endMs: nowMs - 1 }));
    store.append(profileFromText('p:1;a@n 2', { endMs: nowMs, spanMs: 1 }));
    await store.commit();
    expect(await samplesIn(store)).toBe(7);
    expect((await readWindow(store, { ...everything(), type: 'off_cpu/nanoseconds' }, 1)).samples).toBe(7e9);
    expect(store.stats().samples).toBe(8);
    await store.close();
  });

  it('says in a sentence that the server cut a question, or gave up', async () => {
    const database = makeDatabase();
    const proxy = await startProxy();
    const store = await open(database, proxy.url);
    store.append(profileFromText('p:1;a@n 5', { endMs: nowMs, spanMs: 1 }));
    await store.commit();
    proxy.cutAfter = /./;
    const asked = samplesIn(store);
    await expect(asked).rejects.toThrow(/^ClickHouse gave no answer, after \d+\.\d s \(/);
    await expect(asked).rejects.toBeInstanceOf(StoreUnavailable);
    proxy.cutAfter = undefined;
    expect(await samplesIn(store)).toBe(5);
    await store.close();
    proxy.stop();
    const client = createClient({ url: server.url });
    const long = readColumns(client, 'SELECT sum(sipHash64(number)) FROM numbers(100000000000)', 1);
    await expect(long).rejects.toThrow(
      /^ClickHouse ended the query at its limit of time after [1-9]\.\d s: ask/,
    );
    await client.close();
  }, 60_000);

  it('refuses a database of a newer version with a sentence', async () => {
    const database = makeDatabase();
    await (await open(database)).close();
    server.run(`INSERT INTO ${database}.meta VALUES (99)`);
    await expect(open(database)).rejects.toThrow(/schema version 99, this program knows \d+: use the newer/);
  }, 60_000);
});

/** Passes everything on, and cuts the connection instead of the answer to some. */
async function startProxy() {
  const proxy = { url: '', cutAfter: undefined as RegExp | undefined, stop: () => {} };
  const target = new URL(server.url);
  const http = createServer((incoming, response) => {
    const cut = proxy.cutAfter?.test(decodeURIComponent(incoming.url!.replaceAll('+', ' '))) ?? false;
    const options = { host: target.hostname, port: target.port, path: incoming.url, method: incoming.method };
    const outgoing = request(options, (answer: IncomingMessage) => {
      if (cut) {
        answer.resume().once('end', () => response.destroy());
        return;
      }
      response.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(response);
    });
    incoming.pipe(outgoing);
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  proxy.url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  proxy.stop = () => {
    http.closeAllConnections();
    http.close();
  };
  return proxy;
}
