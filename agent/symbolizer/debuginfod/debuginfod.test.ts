/** The client against servers that misbehave; what a real one does is in test/debuginfod.test.ts. */
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { BadSetting } from '../../../common/base/bad-setting.ts';
import { DEBUGINFOD_DEFAULTS, Debuginfod, type DebuginfodOptions } from './debuginfod.ts';
import { debuginfodFromEnvironment } from './debuginfod-settings.ts';

const ID = '0123456789abcdef0123456789abcdef01234567';
const idOf = (n: number): string => n.toString(16).padStart(40, '0');
const servers: Server[] = [];
const clients: Debuginfod[] = [];
let base = '';
let cache = '';

beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'everyframe-debuginfod-'));
  cache = join(base, 'deep', 'cache');
});
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.stop()));
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
  rmSync(base, { recursive: true });
});

/** A server, and the paths that it was asked for. */
async function serve(answer: RequestListener): Promise<{ url: string; asked: string[] }> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url!);
    answer(request, response);
  });
  servers.push(server.listen(0, '127.0.0.1'));
  await once(server, 'listening');
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

function connect(options: Partial<DebuginfodOptions>, warnings: string[] = []): Debuginfod {
  const client = new Debuginfod({ ...DEBUGINFOD_DEFAULTS, urls: [], cache, ...options }, (text) =>
    warnings.push(text),
  );
  clients.push(client);
  return client;
}

const send =
  (bytes: string): RequestListener =>
  (_, response) =>
    void response.end(bytes);
const absent: RequestListener = (_, response) => void response.writeHead(404).end();

describe('a file', () => {
  test('is fetched once, also when it is asked for twice at a time, and by later runs', async () => {
    const { url, asked } = await serve(send('content'));
    const client = connect({ urls: [url] });
    const paths = await Promise.all([client.find(ID), client.find(ID)]);
    expect(readFileSync(paths[0]!, 'utf8')).toBe('content');
    expect(await connect({ urls: [url] }).find(ID)).toBe(paths[1]);
    expect(asked).toEqual([`/buildid/${ID}/debuginfo`]);
    expect(client.stats).toMatchObject({ asked: 1, fetched: 1, fetchedBytes: 7, failed: 0 });
  });

  test('that the first server lacks is asked of the second', async () => {
    const [first, second] = [await serve(absent), await serve(send('content'))];
    expect(await connect({ urls: [first.url, second.url] }).find(ID)).toBeDefined();
    expect([first.asked.length, second.asked.length]).toEqual([1, 1]);
  });

  test('that no server has is not asked for again, until that is old', async () => {
    const { url, asked } = await serve(absent);
    const client = connect({ urls: [url] });
    expect(await client.find(ID)).toBeUndefined();
    expect(await client.find(ID)).toBeUndefined();
    expect(await connect({ urls: [url] }).find(ID)).toBeUndefined();
    expect(asked).toHaveLength(1);
    const hours = Date.now() / 1000 - 2 * 3600;
    utimesSync(join(cache, `${ID}.absent`), hours, hours);
    expect(await client.find(ID)).toBeUndefined();
    expect(asked).toHaveLength(2);
  });

  test('with a build ID that is none is not asked for', async () => {
    const { url, asked } = await serve(send('content'));
    for (const id of ['', 'abc', '../../../etc/passwd', ID.toUpperCase(), `${ID}/..`, 'f'.repeat(1000)])
      expect(await connect({ urls: [url] }).find(id)).toBeUndefined();
    expect(asked).toEqual([]);
  });
});

describe('a server', () => {
  test('that sends more than the limit, with or without saying so', async () => {
    const endless: RequestListener = (_, response) => {
      const more = (): void => {
        while (!response.destroyed && response.write('x'.repeat(65_536)));
        response.once('drain', more);
      };
      more();
    };
    const { url } = await serve(endless);
    const client = connect({ urls: [url], maxFileBytes: 1 << 20 });
    expect(await client.find(ID)).toBeUndefined();
    expect(client.stats).toMatchObject({ absent: 1, failed: 0 });
    expect(readdirSync(cache)).toEqual([`${ID}.absent`]);
  });

  test('that stalls, breaks off or fails is left alone, and nothing is kept of it', async () => {
    const stalls: RequestListener = (_, response) => void response.writeHead(200).write('begin');
    const breaks: RequestListener = (_, response) => {
      response.writeHead(200, { 'content-length': '1000' });
      response.write('begin', () => response.destroy());
    };
    const fails: RequestListener = (_, response) => void response.writeHead(503).end('busy');
    for (const answer of [stalls, breaks, fails]) {
      const { url, asked } = await serve(answer);
      const warnings: string[] = [];
      const client = connect({ urls: [url], idleMs: 300 }, warnings);
      expect(await client.find(ID)).toBeUndefined();
      expect(await client.find(idOf(1))).toBeUndefined();
      expect(client.stats).toMatchObject({ failed: 2, absent: 0 });
      expect(asked).toHaveLength(1);
      expect(warnings).toEqual([expect.stringContaining(url)]);
      expect(readdirSync(cache)).toEqual([]);
    }
  });

  test('that is not there, before one that is', async () => {
    const { url } = await serve(send('content'));
    expect(await connect({ urls: ['http://127.0.0.1:1', url] }).find(ID)).toBeDefined();
    const alone = connect({ urls: ['http://127.0.0.1:1'] });
    expect(await alone.find(idOf(7))).toBeUndefined();
    expect(alone.stats.failed).toBe(1);
  });

  test('that is slow does not hold up the end', async () => {
    let arrived = (): void => {};
    const waits = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    const { url } = await serve(() => arrived());
    const client = connect({ urls: [url] });
    const finding = [ID, idOf(1), idOf(2)].map((id) => client.find(id));
    await waits;
    await client.stop();
    expect(await Promise.all(finding)).toEqual([undefined, undefined, undefined]);
  });
});

describe('the cache', () => {
  test('drops what was used longest ago when it is too large', async () => {
    const { url } = await serve(send('x'.repeat(1000)));
    const client = connect({ urls: [url], maxCacheBytes: 2500 });
    const ids = [idOf(1), idOf(2), idOf(3)];
    for (const [i, id] of ids.entries()) {
      await client.find(id);
      const at = Date.now() / 1000 - 100 + i;
      if (i < 2) utimesSync(join(cache, id), at, at);
    }
    expect(ids.map((id) => existsSync(join(cache, id)))).toEqual([false, true, true]);
    const last = Date.now() / 1000 - 50;
    utimesSync(join(cache, ids[2]!), last, last);
    await client.find(ids[1]!);
    await client.find(idOf(4));
    expect(ids.map((id) => existsSync(join(cache, id)))).toEqual([false, true, false]);
  });

  test('does not believe what others could have put there', async () => {
    const { url } = await serve(send('true'));
    const client = connect({ urls: [url] });
    const path = (await client.find(ID))!;
    for (const plant of [
      () => chmodSync(path, 0o666),
      () => {
        writeFileSync(join(base, 'planted'), 'false');
        rmSync(path);
        symlinkSync(join(base, 'planted'), path);
      },
    ]) {
      plant();
      expect(await client.find(ID)).toBe(path);
      expect(readFileSync(path, 'utf8')).toBe('true');
    }
    expect(client.stats.fetched).toBe(3);
  });
});

describe('settings', () => {
  test('come from the variables of elfutils', () => {
    const env = {
      DEBUGINFOD_URLS: ' http://a/  https://b/x ',
      CACHE_DIRECTORY: '/c',
      DEBUGINFOD_MAXSIZE: '5',
      DEBUGINFOD_MAXTIME: '7',
    };
    expect(debuginfodFromEnvironment(env)).toMatchObject({
      urls: ['http://a', 'https://b/x'],
      cache: '/c/debuginfod',
      maxFileBytes: 5,
      timeoutMs: 7000,
    });
  });

  test.each([
    [{}, /set DEBUGINFOD_URLS/],
    [{ DEBUGINFOD_URLS: 'file:///x' }, /"file:\/\/\/x"/],
    [{ DEBUGINFOD_URLS: 'nonsense' }, /"nonsense"/],
    [{ DEBUGINFOD_URLS: 'http://a', DEBUGINFOD_MAXSIZE: '-1' }, /DEBUGINFOD_MAXSIZE is "-1"/],
  ])('that are wrong are named: %j', (env, message) => {
    expect(() => debuginfodFromEnvironment(env)).toThrow(BadSetting);
    expect(() => debuginfodFromEnvironment(env)).toThrow(message);
  });
});
