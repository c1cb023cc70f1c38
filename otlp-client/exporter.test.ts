import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer as createHttp2Server } from 'node:http2';
import { type AddressInfo, connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ServerCredentials, status } from '@grpc/grpc-js';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { opentelemetry } from '#otlp';
import { retryInfo } from '../test/fixtures/retry-info.ts';
import {
  type ReceivedCall,
  type ReceiverOptions,
  ScriptedReceiver,
} from '../test/fixtures/scripted-receiver.ts';
import { Exporter } from './exporter.ts';
import type { ConnectionOptions } from './grpc-client.ts';

const PATH = '/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export';
const Response = opentelemetry.proto.collector.profiles.v1development.ExportProfilesServiceResponse;

const open: { close(): void }[] = [];
afterEach(() => {
  vi.unstubAllEnvs();
  for (const each of open.splice(0)) each.close();
});

async function receive(
  onCall: (call: ReceivedCall) => void,
  more: Partial<ReceiverOptions> = {},
): Promise<ScriptedReceiver> {
  const receiver = await ScriptedReceiver.start({ path: PATH, onCall, ...more });
  open.push({ close: () => receiver.stop() });
  return receiver;
}

function exporterTo(address: string, more: Partial<ConnectionOptions> = {}): Exporter {
  const exporter = new Exporter({ address, tls: undefined, headers: [], compression: 'gzip', ...more });
  open.push(exporter);
  return exporter;
}

const REQUEST = new TextEncoder().encode('profile '.repeat(1000));

describe('Exporter', () => {
  it('speaks through a Unix socket', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'everyframe-grpc-'));
    const at = `unix:${directory}/otlp.sock`;
    const receiver = await receive((call) => call.ok(), { at });
    expect(receiver.address).toBe(at);
    expect(await exporterTo(at).send(REQUEST, 5000)).toMatchObject({ kind: 'ok' });
    rmSync(directory, { recursive: true });
  });

  it.each(['gzip', 'none'] as const)(
    'sends the bytes and the headers, compression %s',
    async (compression) => {
      const seen: ReceivedCall[] = [];
      const receiver = await receive((call) => {
        seen.push(call);
        call.ok();
      });
      const headers = [
        ['authorization', 'Bearer x'],
        ['trace-bin', 'AQID'],
      ] as const;
      const exporter = exporterTo(receiver.address, { headers, compression });
      expect(await exporter.send(REQUEST, 5000)).toEqual({ kind: 'ok', rejectedProfiles: 0, message: '' });
      expect(seen).toHaveLength(1);
      expect(new Uint8Array(seen[0]!.request)).toEqual(REQUEST);
      expect(seen[0]!.metadata.get('authorization')).toEqual(['Bearer x']);
      expect(seen[0]!.metadata.get('trace-bin')).toEqual([Buffer.from([1, 2, 3])]);
    },
  );

  it.each([
    ['127.0.0.1', 'auto', 'identity'],
    ['127.0.0.1', 'gzip', 'gzip'],
    // this machine too, but its name does not say so
    ['0.0.0.0', 'auto', 'gzip'],
    ['0.0.0.0', 'none', 'identity'],
  ] as const)('to %s with compression %s sends %s', async (host, compression, encoding) => {
    const server = createHttp2Server();
    const port = await new Promise<number>((resolve) => {
      server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
    });
    const encodings: unknown[] = [];
    server.on('stream', (stream, headers) => {
      encodings.push(headers['grpc-encoding'] ?? 'identity');
      stream.respond(
        { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': 0 },
        { endStream: true },
      );
    });
    open.push({ close: () => void server.close() });
    await exporterTo(`${host}:${port}`, { compression }).send(REQUEST, 5000);
    expect(encodings).toEqual([encoding]);
  });

  it('sends the same headers with each request', async () => {
    const seen: unknown[] = [];
    const receiver = await receive((call) => {
      seen.push(call.metadata.toJSON());
      call.ok();
    });
    const exporter = exporterTo(receiver.address, { headers: [['a', '1']] });
    for (let i = 0; i < 3; i++) await exporter.send(REQUEST, 5000);
    expect(seen[0]).toMatchObject({ a: ['1'] });
    expect(seen[2]).toEqual(seen[1]);
  });

  it('goes to the next of several addresses, and on from one that goes away', async () => {
    const [one, other] = [await receive((call) => call.ok()), await receive((call) => call.ok())];
    const exporter = exporterTo(`ipv4:127.0.0.1:1,${one.address},${other.address}`);
    expect(await exporter.send(REQUEST, 5000)).toMatchObject({ kind: 'ok' });
    one.stop();
    await expect.poll(() => exporter.send(REQUEST, 5000), { timeout: 10_000 }).toMatchObject({ kind: 'ok' });
  });

  it('asks the proxy that upper-case variables name, with its password as it is written, unless NO_PROXY has the receiver', async () => {
    const receiver = await receive((call) => call.ok());
    const asked: string[] = [];
    const proxy = createHttpServer().on('connect', (request, socket) => {
      asked.push(`${request.url} ${request.headers['proxy-authorization']}`);
      const through = connect(receiver.port, '127.0.0.1', () => {
        socket.write('HTTP/1.1 200 OK\r\n\r\n');
        through.pipe(socket).pipe(through);
      });
      socket.on('error', () => through.destroy());
      through.on('error', () => socket.destroy());
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    open.push(proxy);
    for (const name of ['http_proxy', 'https_proxy', 'no_proxy']) vi.stubEnv(name, undefined);
    vi.stubEnv('HTTP_PROXY', `http://user:100%@127.0.0.1:${(proxy.address() as AddressInfo).port}`);
    expect(await exporterTo('collector.test:4317').send(REQUEST, 5000)).toMatchObject({ kind: 'ok' });
    expect(asked).toEqual([`collector.test:4317 Basic ${Buffer.from('user:100%').toString('base64')}`]);
    vi.stubEnv('NO_PROXY', '.test');
    expect(await exporterTo('collector.test:4317').send(REQUEST, 500)).toMatchObject({ kind: 'retry' });
    expect(asked).toHaveLength(1);
  });

  it('reaches a collector on this machine without its proxy', async () => {
    vi.stubEnv('http_proxy', 'http://127.0.0.1:1');
    vi.stubEnv('no_proxy', '');
    const receiver = await receive((call) => call.ok());
    expect(await exporterTo(receiver.address).send(REQUEST, 5000)).toMatchObject({ kind: 'ok' });
  });

  it('reads partial success', async () => {
    const bytes = Response.encode(
      Response.fromObject({ partialSuccess: { rejectedProfiles: 3, errorMessage: 'bad\nstack' } }),
    ).finish();
    const receiver = await receive((call) => call.ok(bytes));
    const result = await exporterTo(receiver.address).send(REQUEST, 5000);
    expect(result).toEqual({ kind: 'ok', rejectedProfiles: 3, message: 'bad stack' });
  });

  it('takes an answer that is not protobuf as arrived', async () => {
    const receiver = await receive((call) => call.ok(Buffer.from([0x0a, 0xff, 0xff])));
    expect(await exporterTo(receiver.address).send(REQUEST, 5000)).toMatchObject({
      kind: 'ok',
      rejectedProfiles: 0,
    });
  });

  it.each([
    [status.CANCELLED, 'retry'],
    [status.DEADLINE_EXCEEDED, 'retry'],
    [status.ABORTED, 'retry'],
    [status.OUT_OF_RANGE, 'retry'],
    [status.UNAVAILABLE, 'retry'],
    [status.DATA_LOSS, 'retry'],
    [status.RESOURCE_EXHAUSTED, 'refused'],
    [status.UNKNOWN, 'refused'],
    [status.INVALID_ARGUMENT, 'refused'],
    [status.NOT_FOUND, 'refused'],
    [status.ALREADY_EXISTS, 'refused'],
    [status.PERMISSION_DENIED, 'refused'],
    [status.FAILED_PRECONDITION, 'refused'],
    [status.UNIMPLEMENTED, 'refused'],
    [status.INTERNAL, 'refused'],
    [status.UNAUTHENTICATED, 'refused'],
  ])('status %i is %s', async (code, kind) => {
    const receiver = await receive((call) => call.fail(code, 'because'));
    const result = await exporterTo(receiver.address).send(REQUEST, 5000);
    expect(result).toMatchObject({ kind, code: status[code], message: 'because' });
  });

  it.each([status.RESOURCE_EXHAUSTED, status.UNAVAILABLE])('honours RetryInfo with %i', async (code) => {
    const receiver = await receive((call) => call.fail(code, 'busy', retryInfo(300, 500_000_000)));
    expect(await exporterTo(receiver.address).send(REQUEST, 5000)).toEqual({
      kind: 'retry',
      code: status[code],
      message: 'busy',
      delayMs: 300_500,
    });
  });

  it('tells a request that is too large from a receiver that is busy', async () => {
    const receiver = await receive((call) => call.ok(), {
      channel: { 'grpc.max_receive_message_length': 1000 },
    });
    const incompressible = Buffer.from(Array.from({ length: 4000 }, (_, i) => (i * i * 31) >> 3));
    for (const compression of ['gzip', 'none'] as const) {
      const result = await exporterTo(receiver.address, { compression }).send(incompressible, 5000);
      expect(result.kind, JSON.stringify(result)).toBe('too-large');
    }
    const go = await receive((call) =>
      call.fail(status.RESOURCE_EXHAUSTED, 'grpc: received message larger than max (5242880 vs. 4194304)'),
    );
    expect((await exporterTo(go.address).send(REQUEST, 5000)).kind).toBe('too-large');
  });

  it('says why nobody can be reached', async () => {
    const receiver = await receive(() => {});
    receiver.stop();
    const result = await exporterTo(receiver.address).send(REQUEST, 5000);
    expect(result).toMatchObject({ kind: 'retry', code: 'UNAVAILABLE' });
    expect((result as { message: string }).message).toBe(`connect ECONNREFUSED ${receiver.address}`);
  });

  it('gives up at the deadline, and takes a new connection after three silent calls', async () => {
    let connections = 0;
    const sessions: { destroy(): void }[] = [];
    const silent = createHttp2Server()
      .on('session', (session) => {
        connections++;
        sessions.push(session);
      })
      .on('stream', (stream) => stream.on('error', () => {}));
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    open.push({
      close() {
        for (const session of sessions) session.destroy();
        silent.close();
      },
    });
    const exporter = exporterTo(`127.0.0.1:${(silent.address() as AddressInfo).port}`);
    for (let i = 0; i < 3; i++) {
      expect(await exporter.send(REQUEST, 1000)).toMatchObject({ kind: 'retry', code: 'DEADLINE_EXCEEDED' });
      expect(connections).toBe(1);
    }
    await exporter.send(REQUEST, 1000);
    expect(connections).toBe(2);
  });

  it('takes a new connection after one call for which none came about, as where a Service still names a pod that is gone', async () => {
    const receiver = await receive((call) => call.ok());
    const { port } = new URL(`http://${receiver.address}`);
    let connections = 0;
    const path = createServer((socket) => {
      socket.on('error', () => {});
      open.push({ close: () => socket.destroy() });
      // the first one gets no word, not even the settings that begin HTTP/2
      if (++connections > 1) socket.pipe(connect(Number(port), '127.0.0.1')).pipe(socket);
    });
    await new Promise<void>((resolve) => path.listen(0, '127.0.0.1', resolve));
    open.push(path);
    const exporter = exporterTo(`127.0.0.1:${(path.address() as AddressInfo).port}`);
    expect(await exporter.send(REQUEST, 300)).toMatchObject({
      kind: 'retry',
      code: 'DEADLINE_EXCEEDED',
      message: expect.stringMatching(/^no connection within 0\.3\d* s$/),
    });
    expect(await exporter.send(REQUEST, 5000)).toMatchObject({ kind: 'ok' });
  });

  it('cancels the call under way', async () => {
    let arrived = 0;
    const receiver = await receive(() => {
      arrived++;
    });
    const exporter = exporterTo(receiver.address);
    const result = exporter.send(REQUEST, 60_000);
    await vi.waitFor(() => expect(arrived).toBe(1));
    exporter.cancel();
    expect(await result).toMatchObject({ kind: 'retry', code: 'CANCELLED' });
  });
});

describe('Exporter over TLS', () => {
  it('trusts the given authority, shows its certificate, and refuses others', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'everyframe-tls-'));
    open.push({ close: () => rmSync(dir, { recursive: true }) });
    const make = (name: string): { cert: Buffer; key: Buffer } => {
      const [cert, key] = [join(dir, `${name}.pem`), join(dir, `${name}.key`)];
      const subject = ['-subj', `/CN=${name}`, '-addext', 'subjectAltName=IP:127.0.0.1'];
      execFileSync(
        'openssl',
        [
          ...[
            'req',
            '-x509',
            '-newkey',
            'ec',
            '-pkeyopt',
            'ec_paramgen_curve:prime256v1',
            '-nodes',
            '-days',
            '2',
          ],
          ...['-keyout', key, '-out', cert, ...subject],
        ],
        { stdio: 'ignore' },
      );
      return { cert: readFileSync(cert), key: readFileSync(key) };
    };
    const [server, client] = [make('server'), make('client')];
    const receiver = await receive((call) => call.ok(), {
      credentials: ServerCredentials.createSsl(
        client.cert,
        [{ cert_chain: server.cert, private_key: server.key }],
        true,
      ),
    });
    const send = (tls: ConnectionOptions['tls']) => exporterTo(receiver.address, { tls }).send(REQUEST, 5000);
    expect(await send({ ca: server.cert, ...client })).toMatchObject({ kind: 'ok' });
    expect(await send({ ca: server.cert })).toMatchObject({ kind: 'retry' });
    expect(await send({ ...client })).toMatchObject({ kind: 'retry', code: 'UNAVAILABLE' });
    expect(await send(undefined)).toMatchObject({ kind: 'retry' });
  });
});
