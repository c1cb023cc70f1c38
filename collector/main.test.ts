import { execFileSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { get as httpsGet } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { status as grpcStatus } from '@grpc/grpc-js';
import Long from 'long';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FlameGraphResponse } from '../common/flame/tree-answer.ts';
import { encodeOtlp, otlpRequest } from '../test/browser/encode-otlp.ts';
import { Pusher } from '../test/browser/push.ts';
import { profileFromText } from '../test/browser/synthetic-profile.ts';
import { type Collector, type CollectorOptions, startCollector } from './main.ts';
import { CollectorStartError } from './settings/start-error.ts';
import type { StatusResponse } from './status/status.ts';

const warnings: string[] = [];
const logger = {
  info: () => {},
  warn: (text: unknown) => void warnings.push(String(text)),
  error: (...what: unknown[]) => expect.fail(`logged ${JSON.stringify(what)}`),
};
const pageDirectory = mkdtempSync(join(tmpdir(), 'everyframe-main-'));
writeFileSync(join(pageDirectory, 'index.html'), '<!doctype html>');

const start = (changes: Partial<CollectorOptions> = {}): Promise<Collector> =>
  startCollector({
    grpcListen: '127.0.0.1:0',
    httpListen: '127.0.0.1:0',
    pageListen: '127.0.0.1:0',
    maxMemoryBytes: 2 ** 26,
    pageDirectory,
    logger,
    ...changes,
  });

let collector: Collector;
let pusher: Pusher;

beforeAll(async () => {
  collector = await start();
  pusher = new Pusher(collector.urls.grpc);
});

afterAll(async () => {
  pusher.close();
  await collector.stop();
  rmSync(pageDirectory, { recursive: true });
});

const profileOf = (text: string) => profileFromText(text, { endMs: Date.now(), spanMs: 2000 });
const query = async <T>(path: string): Promise<T> =>
  (await (await fetch(new URL(path, collector.urls.page))).json()) as T;
const samplesOf = async (process: string): Promise<number> =>
  (await query<FlameGraphResponse>(`/api/v1/tree?where=process%3D${process}`)).samples;
const status = (): Promise<StatusResponse> => query<StatusResponse>('/api/v1/status');
const post = (body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string>): Promise<Response> =>
  fetch(collector.urls.http, { method: 'POST', body, headers });
const bodyOf = (bytes: Uint8Array): Uint8Array<ArrayBuffer> => new Uint8Array(bytes);

const PROTOBUF = { 'content-type': 'application/x-protobuf' };

describe('OTLP over gRPC', () => {
  it('takes compressed requests, and the page sees them', async () => {
    const text = 'grpc-sh:10;main@n;write@n;vfs_write@k 6\ngrpc-sh:11;main@n 4';
    expect(await pusher.push(encodeOtlp(profileOf(text)))).toEqual({ rejectedProfiles: 0, errorMessage: '' });
    expect(await samplesOf('grpc-sh')).toBe(10);
    const graph = await query<FlameGraphResponse>('/api/v1/tree?where=process%3Dgrpc-sh');
    expect(graph.strings).toEqual(expect.arrayContaining(['main', 'write', 'vfs_write', 'vmlinux']));
    expect(graph.kinds).toEqual(expect.arrayContaining(['native', 'kernel']));
    expect(graph.cpuNanos).toBe(10 * 50_000_000);
    expect((await status()).agents).toMatchObject([{ peer: '127.0.0.1', host: 'test-host', samples: 10 }]);
  });

  it('keeps what is good of a request with bad samples, and says what it left out', async () => {
    const text = 'lenient:1;main@n;a@n 5\nlenient:1;main@n;b@n 3';
    const request = encodeOtlp(profileOf(text), ({ resourceProfiles }) => {
      resourceProfiles[0]!.scopeProfiles[0]!.profiles[0]!.samples[1]!.stackIndex = 999;
    });
    const before = await status();
    const answer = await pusher.push(request);
    expect(answer.errorMessage).toMatch(/3 samples rejected: .*\(3\)/);
    expect(await samplesOf('lenient')).toBe(5);
    const after = await status();
    expect(after.samples.rejected - before.samples.rejected).toBe(3);
    expect(after.samples.received - before.samples.received).toBe(8);
    expect(after.rejections.reduce((sum, { count }) => sum + count, 0)).toBe(after.samples.rejected);
  });

  it('refuses what is not a profile for good, says why, and stays up', async () => {
    const before = await status();
    const refused = pusher.push(Buffer.from('GET / HTTP/1.1\r\n\r\n'));
    await expect(refused).rejects.toMatchObject({ code: grpcStatus.INVALID_ARGUMENT, details: /./ });
    const after = await status();
    expect(after.requests.refused).toBe(before.requests.refused + 1);
    expect(after.refusals[0]!.reason).not.toBe('');
    await pusher.push(encodeOtlp(profileOf('still-up:1;main@n 1')));
    expect(await samplesOf('still-up')).toBe(1);
  });
});

describe('OTLP over HTTP', () => {
  it('takes protobuf, plain and compressed', async () => {
    const request = encodeOtlp(profileOf('http:1;main@n 4'));
    const plain = await post(bodyOf(request), PROTOBUF);
    expect([plain.status, await plain.text()]).toEqual([200, '']);
    expect(plain.headers.get('content-type')).toBe('application/x-protobuf');
    const other = gzipSync(encodeOtlp(profileOf('http:1;main@n 5')));
    const zipped = await post(bodyOf(other), { ...PROTOBUF, 'content-encoding': 'gzip' });
    expect(zipped.status).toBe(200);
    expect(await samplesOf('http')).toBe(9);
  });

  it('stores once what a sender repeats, over gRPC too', async () => {
    const request = encodeOtlp(profileOf('again:1;main@n 4'));
    const before = await status();
    await post(bodyOf(request), PROTOBUF);
    await post(bodyOf(gzipSync(request)), { ...PROTOBUF, 'content-encoding': 'gzip' });
    await pusher.push(request);
    expect(await samplesOf('again')).toBe(4);
    expect((await status()).requests.repeated).toBe(before.requests.repeated + 2);
  });

  it('takes JSON and answers in JSON', async () => {
    const request = otlpRequest(profileOf('json:1;main@n 4'));
    const { resourceProfiles, dictionary } = request;
    const text = JSON.stringify({ resourceProfiles, dictionary }, (_, value) =>
      value && typeof value === 'object' && 'unsigned' in value ? Long.fromValue(value).toString() : value,
    );
    const response = await post(text, { 'content-type': 'application/json; charset=utf-8' });
    expect([response.status, await response.json()]).toEqual([200, {}]);
    expect(await samplesOf('json')).toBe(4);
    const bad = await post('{', { 'content-type': 'application/json' });
    expect(bad.status).toBe(400);
    expect(await bad.json()).toMatchObject({ code: 3, message: expect.stringMatching(/./) });
  });

  it.each([
    ['another type', 415, { 'content-type': 'text/plain' }, 'x', 'content-type is "text/plain"'],
    ['another encoding', 415, { ...PROTOBUF, 'content-encoding': 'br' }, 'x', 'content-encoding is "br"'],
    ['a web page', 403, { ...PROTOBUF, origin: 'https://evil.example' }, 'x', 'https://evil.example'],
    ['a broken archive', 400, { ...PROTOBUF, 'content-encoding': 'gzip' }, 'x', "can't be read"],
  ])('refuses %s with %i and a reason', async (_, httpStatus, headers, body, reason) => {
    const response = await post(body, headers as Record<string, string>);
    expect(response.status).toBe(httpStatus);
    expect(await response.text()).toContain(reason);
    expect((await status()).refusals.some((refusal) => refusal.reason.includes(reason))).toBe(true);
  });

  it('bounds what a small archive may unpack to', async () => {
    const bomb = gzipSync(Buffer.alloc(33 * 2 ** 20));
    const response = await post(bodyOf(bomb), { ...PROTOBUF, 'content-encoding': 'gzip' });
    expect(response.status).toBe(413);
  });

  it('serves nothing else', async () => {
    expect((await fetch(new URL('/v1/traces', collector.urls.http), { method: 'POST' })).status).toBe(404);
    expect((await fetch(collector.urls.http)).status).toBe(405);
  });
});

describe('startCollector', () => {
  it('names the port that is taken and the flag to change it, and leaves nothing running', async () => {
    const taken = new URL(collector.urls.page).host;
    const second = start({ pageListen: taken });
    await expect(second).rejects.toThrow(CollectorStartError);
    await expect(second).rejects.toThrow(
      new RegExp(`port ${taken.split(':')[1]} for the page is taken by another program.*--page-listen`),
    );
    await expect(start({ grpcListen: collector.urls.grpc })).rejects.toThrow(
      /OTLP over gRPC is taken.*--grpc-listen/,
    );
  });

  it('explains addresses that are none, and a page that is not built', async () => {
    await expect(start({ httpListen: '4318' })).rejects.toThrow('--http-listen: "4318" is not an address');
    await expect(start({ grpcListen: '192.0.2.1:0' })).rejects.toThrow(/--grpc-listen/);
    await expect(start({ pageDirectory: '/nowhere' })).rejects.toThrow('the page is not built (/nowhere)');
  });

  it('lets others reach it only with a token, or when told to', async () => {
    await expect(start({ pageListen: '0.0.0.0:0' })).rejects.toThrow(
      /--page-listen 0\.0\.0\.0:0 is beyond this machine, and whoever reaches it sees what runs here: give --token-file/,
    );
    const open = await start({ grpcListen: '0.0.0.0:0', allowAnyone: true });
    await open.stop();
    const access = { tokenFile: writeFile('token', TOKEN) };
    const guarded = await start({ httpListen: '0.0.0.0:0', access });
    await guarded.stop();
    expect(warnings).toEqual([
      expect.stringMatching(/--grpc-listen 0\.0\.0\.0:0 is beyond.*can send profiles/),
      expect.stringMatching(/--http-listen 0\.0\.0\.0:0 is beyond.*without --tls-cert/),
    ]);
  });

  it.each([
    [{ tlsCert: '/nowhere' }, /--tls-cert needs --tls-key/],
    [{ tlsKey: '/nowhere' }, /--tls-key needs --tls-cert/],
    [
      { tlsCert: '/nowhere', tlsKey: '/nowhere' },
      /can't read \/nowhere, which --tls-cert names: there is no such file/,
    ],
    [{ tlsCert: '/etc/hosts', tlsKey: '/etc/hosts' }, /\/etc\/hosts, which --tls-cert names, is not a PEM/],
    [{ tokenFile: '/etc/hosts' }, /\/etc\/hosts \(--token-file\) must hold one line of 16 or more/],
  ])('says what is wrong with %j', async (access, message) => {
    await expect(start({ access })).rejects.toThrow(message);
  });
});

const TOKEN = 'f00dfacef00dface';
const writeFile = (name: string, text: string): string => {
  const path = join(pageDirectory, name);
  writeFileSync(path, text);
  return path;
};

describe('a collector with a token', () => {
  let guarded: Collector;
  const request = () => encodeOtlp(profileOf('guarded:1;main@n 3'));

  beforeAll(async () => {
    guarded = await start({ access: { tokenFile: writeFile('token', `${TOKEN}\n`) } });
  });
  afterAll(() => guarded.stop());

  const tryHttp = async (authorization?: string): Promise<number> => {
    const headers = { ...PROTOBUF, ...(authorization === undefined ? {} : { authorization }) };
    return (await fetch(guarded.urls.http, { method: 'POST', body: bodyOf(request()), headers })).status;
  };

  it('takes and says nothing without it', async () => {
    const wrong = [undefined, '', 'Bearer', 'Bearer x', `Token ${TOKEN}`, `Bearer ${TOKEN}x`, TOKEN];
    expect(await Promise.all(wrong.map(tryHttp))).toEqual(wrong.map(() => 401));
    const sender = new Pusher(guarded.urls.grpc);
    await expect(sender.push(request())).rejects.toMatchObject({ code: grpcStatus.UNAUTHENTICATED });
    sender.close();
    for (const path of ['', 'api/v1/top', 'api/status', 'api/v1/openapi.json']) {
      const answer = await fetch(new URL(path, guarded.urls.page));
      expect([path, answer.status]).toEqual([path, 401]);
      expect(answer.headers.get('www-authenticate')).toMatch(/^Basic /);
    }
    expect(guarded.tenants[0]!.store.stats().samples).toBe(0);
  });

  it('takes and shows everything with it, also as the password that a browser sends', async () => {
    expect(await tryHttp(`bearer ${TOKEN}`)).toBe(200);
    const sender = new Pusher(guarded.urls.grpc, { authorization: `Bearer ${TOKEN}` });
    await sender.push(request());
    sender.close();
    const authorization = `Basic ${Buffer.from(`anyone:${TOKEN}`).toString('base64')}`;
    const answer = await fetch(new URL('api/v1/top', guarded.urls.page), { headers: { authorization } });
    expect(await answer.json()).toMatchObject({ samples: 6 });
  });
});

describe('a collector with a certificate', () => {
  const [cert, key] = ['cert.pem', 'key.pem'].map((name) => join(pageDirectory, name)) as [string, string];
  let encrypted: Collector;
  beforeAll(async () => {
    const name = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1'];
    const made = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', ...name];
    execFileSync('openssl', ['req', '-x509', ...made, '-keyout', key, '-out', cert], { stdio: 'ignore' });
    encrypted = await start({ access: { tlsCert: cert, tlsKey: key } });
  });
  afterAll(() => encrypted.stop());

  /** node:https, since fetch takes no certificate authority. */
  const get = (url: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const request = httpsGet(url, { ca: readFileSync(cert) }, (response) => {
        response.setEncoding('utf8').on('data', resolve);
      });
      request.once('error', reject);
    });

  it('speaks TLS on every address, and nothing else', async () => {
    const request = encodeOtlp(profileOf('tls:1;main@n 2'));
    const sender = new Pusher(encrypted.urls.grpc, {}, readFileSync(cert));
    await sender.push(request);
    sender.close();
    expect(encrypted.urls.page).toMatch(/^https:/);
    expect(JSON.parse(await get(new URL('api/v1/top', encrypted.urls.page).href))).toMatchObject({
      samples: 2,
    });
    expect(await get(encrypted.urls.http.replace(/\/v1.*/, '/'))).toMatch(/nothing at/);
    const plain = new Pusher(encrypted.urls.grpc);
    await expect(plain.push(request)).rejects.toMatchObject({ code: grpcStatus.UNAVAILABLE });
    plain.close();
    for (const url of [encrypted.urls.page, encrypted.urls.http])
      await expect(fetch(url.replace('https:', 'http:'))).rejects.toThrow();
  });

  it('takes only a pair', async () => {
    const other = writeFile('other.pem', generateKeyPairSync('ed25519').privateKey.export(PEM) as string);
    await expect(start({ access: { tlsCert: cert, tlsKey: other } })).rejects.toThrow(
      /other\.pem \(--tls-key\) is not the key of .*cert\.pem \(--tls-cert\): give the pair/,
    );
  });
});

const PEM = { type: 'pkcs8', format: 'pem' } as const;

describe('a collector with a limit for each sender', () => {
  it('asks who sends too much to wait, and takes it later', async () => {
    const slow = await start({ maxSenderRate: 10 });
    const send = () =>
      fetch(slow.urls.http, {
        method: 'POST',
        body: bodyOf(encodeOtlp(profileOf('slow:1;main@n 1'))),
        headers: PROTOBUF,
      });
    expect((await send()).status).toBe(200);
    const answer = await send();
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5']);
    expect(await answer.text()).toMatch(/more than 10 bytes a second from one address/);
    await slow.stop();
  });
});
