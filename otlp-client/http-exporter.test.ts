import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { gunzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import type { ConnectionOptions } from './grpc-client.ts';
import { HttpExporter } from './http-exporter.ts';
import { isExempt } from './proxy.ts';

const REQUEST = new TextEncoder().encode('profile '.repeat(1000));
const NAME = 'collector.test';
let dir = '';
const open: { close(): void }[] = [];

beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'everyframe-http-'));
  const key = [
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-keyout',
    `${dir}/key`,
  ];
  const names = ['-subj', `/CN=${NAME}`, '-addext', `subjectAltName=DNS:${NAME}`];
  execFileSync('openssl', ['req', '-x509', ...key, ...names, '-out', `${dir}/cert`], { stdio: 'ignore' });
});
afterAll(() => rmSync(dir, { recursive: true }));
afterEach(() => {
  vi.unstubAllEnvs();
  for (const each of open.splice(0)) each.close();
});

async function listen(server: Server, at: number | string = 0): Promise<number> {
  await new Promise<void>((resolve) => {
    if (typeof at === 'string') server.listen(at, resolve);
    else server.listen(at, '127.0.0.1', resolve);
  });
  open.push({
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  });
  return typeof at === 'string' ? 0 : (server.address() as AddressInfo).port;
}

function exporterTo(profiles: string, more: Partial<ConnectionOptions> = {}, socketPath?: string) {
  const http = { profiles: new URL(profiles), metrics: new URL(profiles), socketPath };
  const options = { address: profiles, tls: undefined, headers: [], compression: 'gzip' as const };
  const exporter = new HttpExporter({ ...options, ...more, http });
  open.push(exporter);
  return exporter;
}

interface Seen {
  line: string;
  headers: IncomingMessage['headers'];
  body: Buffer;
}

/** Answers each request with the next of `answers`, then with 200. */
function receiver(answers: ((response: Parameters<RequestListener>[1]) => void)[] = []) {
  const seen: Seen[] = [];
  const listener: RequestListener = (request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part) => parts.push(part));
    request.on('end', () => {
      seen.push({
        line: `${request.method} ${request.url}`,
        headers: request.headers,
        body: Buffer.concat(parts),
      });
      const answer = answers.shift();
      if (answer) answer(response);
      else response.end();
    });
  };
  return { seen, listener };
}

describe('HttpExporter', () => {
  it.each(['gzip', 'none'] as const)(
    'sends the bytes and the headers, compression %s',
    async (compression) => {
      const { seen, listener } = receiver();
      const port = await listen(createServer(listener));
      const exporter = exporterTo(`http://127.0.0.1:${port}/a/v1development/profiles`, {
        headers: [['authorization', 'Bearer x']],
        compression,
      });
      expect(await exporter.send(REQUEST, 5000)).toEqual({ kind: 'ok', rejectedProfiles: 0, message: '' });
      expect(seen[0]?.line).toBe('POST /a/v1development/profiles');
      expect(seen[0]?.headers).toMatchObject({
        authorization: 'Bearer x',
        'content-type': 'application/x-protobuf',
      });
      const body = compression === 'gzip' ? gunzipSync(seen[0]!.body) : seen[0]!.body;
      expect(body.equals(REQUEST)).toBe(true);
    },
  );

  it.each([
    [400, { kind: 'refused', code: 'HTTP 400', message: 'HTTP 400: no' }],
    [401, { kind: 'refused', code: 'UNAUTHENTICATED' }],
    [404, { kind: 'refused', code: 'UNIMPLEMENTED' }],
    [413, { kind: 'too-large' }],
    [429, { kind: 'retry', delayMs: 3000 }],
    [500, { kind: 'refused', code: 'HTTP 500' }],
    [503, { kind: 'retry', delayMs: 3000 }],
  ])('says what %i means', async (status, expected) => {
    const answer = (response: Parameters<RequestListener>[1]): void => {
      response.writeHead(status, { 'content-type': 'text/plain', 'retry-after': '3' }).end('no');
    };
    const port = await listen(createServer(receiver([answer]).listener));
    expect(await exporterTo(`http://127.0.0.1:${port}/`).send(REQUEST, 5000)).toMatchObject(expected);
  });

  it('gives up after the deadline, on refusal and on an endless answer, and can be cancelled', async () => {
    const endless = (response: Parameters<RequestListener>[1]): void => {
      response.on('error', () => {});
      const timer = setInterval(() => response.write(Buffer.alloc(1 << 16)), 1);
      response.on('close', () => clearInterval(timer));
    };
    const port = await listen(createServer(receiver([() => {}, endless, () => {}]).listener));
    const exporter = exporterTo(`http://127.0.0.1:${port}/`);
    expect(await exporter.send(REQUEST, 50)).toMatchObject({ kind: 'retry', code: 'DEADLINE_EXCEEDED' });
    expect(await exporter.send(REQUEST, 5000)).toMatchObject({ kind: 'retry', code: 'UNAVAILABLE' });
    const sending = exporter.send(REQUEST, 5000);
    exporter.cancel();
    expect(await sending).toMatchObject({ kind: 'retry', code: 'CANCELLED' });
    expect(await exporterTo('http://127.0.0.1:1/').send(REQUEST, 5000)).toMatchObject({ kind: 'retry' });
  });

  it('goes by the status of a refusal, however long its page is', async () => {
    const page = (response: Parameters<RequestListener>[1]): void => {
      response.writeHead(403, { 'content-type': 'text/html' }).end('x'.repeat(1 << 17));
    };
    const port = await listen(createServer(receiver([page]).listener));
    expect(await exporterTo(`http://127.0.0.1:${port}/`).send(REQUEST, 5000)).toMatchObject({
      ...{ kind: 'refused', code: 'PERMISSION_DENIED' },
    });
  });

  it('speaks through a Unix socket', async () => {
    const { seen, listener } = receiver();
    const path = join(dir, 'otlp.sock');
    await listen(createServer(listener), path);
    expect((await exporterTo('http://localhost/v1', {}, path).send(REQUEST, 5000)).kind).toBe('ok');
    expect(seen[0]?.line).toBe('POST /v1');
  });
});

/** A proxy that sends everything to one port, and counts. */
async function startProxy(target: number) {
  const seen: string[] = [];
  const proxy = createServer((request, response) => {
    seen.push(`${request.method} ${request.url}`);
    request.resume().on('end', () => response.end());
  });
  proxy.on('connect', (request, socket) => {
    seen.push(`${request.method} ${request.url} ${request.headers['proxy-authorization'] ?? ''}`.trim());
    const through = connect(target, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      through.pipe(socket).pipe(through);
    });
    through.on('error', () => socket.destroy());
    socket.on('error', () => through.destroy());
  });
  return { seen, port: await listen(proxy) };
}

describe('behind a proxy', () => {
  const tls = () => ({ ca: readFileSync(join(dir, 'cert')) });
  const secure = async () => {
    const { seen, listener } = receiver();
    const pair = { key: readFileSync(join(dir, 'key')), cert: readFileSync(join(dir, 'cert')) };
    return { seen, port: await listen(createSecureServer(pair, listener)) };
  };

  it('checks the certificate of the receiver through the tunnel, over one connection', async () => {
    const behind = await secure();
    const proxy = await startProxy(behind.port);
    vi.stubEnv('HTTPS_PROXY', `http://user:p%20w@127.0.0.1:${proxy.port}`);
    const exporter = exporterTo(`https://${NAME}:4318/x`, { tls: tls() });
    expect(await exporter.send(REQUEST, 5000)).toMatchObject({ kind: 'ok' });
    expect(await exporter.send(REQUEST, 5000)).toMatchObject({ kind: 'ok' });
    expect(proxy.seen).toEqual([`CONNECT ${NAME}:4318 Basic ${Buffer.from('user:p w').toString('base64')}`]);
    expect(behind.seen).toHaveLength(2);
    const other = exporterTo('https://other.test:4318/x', { tls: tls() });
    expect(await other.send(REQUEST, 5000)).toMatchObject({ kind: 'retry', code: 'UNAVAILABLE' });
  });

  it('leaves no connection to a proxy that does not answer', async () => {
    const waiting = new Set<Duplex>();
    const silent = createServer().on('connect', (_, socket) => {
      waiting.add(socket);
      socket
        .resume()
        .on('error', () => {})
        .on('end', () => waiting.delete(socket));
    });
    vi.stubEnv('HTTPS_PROXY', `http://127.0.0.1:${await listen(silent)}`);
    const exporter = exporterTo(`https://${NAME}:4318/x`);
    for (let i = 0; i < 3; i++)
      expect(await exporter.send(REQUEST, 50)).toMatchObject({ kind: 'retry', code: 'DEADLINE_EXCEEDED' });
    await vi.waitFor(() => expect(waiting.size).toBe(0));
  });

  it.each(['http', 'https'])('takes a password with a plain percent sign in it, for %s', async (scheme) => {
    const proxy = await startProxy(1);
    vi.stubEnv(`${scheme}_proxy`, `http://user:100%@127.0.0.1:${proxy.port}`);
    const result = await exporterTo(`${scheme}://${NAME}:4318/x`).send(REQUEST, 5000);
    expect(result.kind).toBe(scheme === 'http' ? 'ok' : 'retry');
    expect(proxy.seen).toHaveLength(1);
  });

  it('asks it for URLs without TLS, and passes it by for names of NO_PROXY', async () => {
    const proxy = await startProxy(1);
    vi.stubEnv('http_proxy', `127.0.0.1:${proxy.port}`);
    expect(await exporterTo(`http://${NAME}:4318/x`).send(REQUEST, 5000)).toMatchObject({ kind: 'ok' });
    expect(proxy.seen).toEqual([`POST http://${NAME}:4318/x`]);
    vi.stubEnv('NO_PROXY', 'test');
    expect(await exporterTo(`http://${NAME}:4318/x`).send(REQUEST, 5000)).toMatchObject({ kind: 'retry' });
    expect(proxy.seen).toHaveLength(1);
  });
});

it.each([
  ['http://a.example:1', 'example', true],
  ['http://a.example:1', '.example', true],
  ['http://a.example:1', '*.example', true],
  ['http://aexample:1', 'example', false],
  ['http://a.example:1', 'b, a.example:1', true],
  ['http://a.example:1', 'a.example:2', false],
  ['http://10.1.2.3:1', '10.0.0.0/8', true],
  ['http://11.1.2.3:1', '10.0.0.0/8', false],
  ['http://[fd00::1]:1', 'fd00::/8', true],
  ['http://[::1]:1', '', true],
  ['http://127.3.2.1:1', '', true],
  ['http://x:1', '*', true],
  ['http://x:1', '10.0.0.0/99', false],
])('%s is exempt by "%s": %s', (url, list, expected) => {
  expect(isExempt(new URL(url), list)).toBe(expected);
});
