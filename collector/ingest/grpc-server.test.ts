/** Calls that no gRPC library makes: each is answered by its headers or its first bytes, and nothing of it is held. */
import { type ClientHttp2Session, connect, type IncomingHttpHeaders } from 'node:http2';
import { gzipSync } from 'node:zlib';
import { status } from '@grpc/grpc-js';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { Access } from '../net/access.ts';
import { ByteBudget } from '../net/byte-budget.ts';
import { SOLE_TENANT } from '../settings/tenants.ts';
import { MemoryStore } from '../store/memory/memory-store.ts';
import { type IngestServer, startGrpcServer } from './grpc-server.ts';
import { Receiver } from './receiver.ts';
import { Receivers } from './receivers.ts';

const TOKEN = 'a-token-of-some-length';
const PATH = '/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export';
const MIB = 2 ** 20;

const store = new MemoryStore({ maxBytes: 2 ** 26, maxAgeMs: 3_600_000, now: Date.now });
const receiver = new Receiver(store, Date.now, { error: () => {} });
const receivers = new Receivers(new Map([[SOLE_TENANT, receiver]]), Date.now);
const budget = new ByteBudget(8 * MIB);
let server: IngestServer;
const sessions: ClientHttp2Session[] = [];

beforeAll(async () => {
  const access = new Access(undefined, TOKEN);
  server = await startGrpcServer({ host: '127.0.0.1', port: 0 }, { receivers, access, budget });
});
afterEach(() => {
  for (const session of sessions.splice(0)) session.destroy();
});
afterAll(() => server.stop());

interface Call {
  body: Buffer;
  headers?: Record<string, string>;
  session?: ClientHttp2Session;
  end?: boolean;
}

function dial(): ClientHttp2Session {
  const session = connect(`http://127.0.0.1:${server.port}`).on('error', () => {});
  sessions.push(session);
  return session;
}

/** Status, and all that came with it. */
function call({ body, headers = {}, session = dial(), end = true }: Call): Promise<IncomingHttpHeaders> {
  const stream = session.request({
    ':method': 'POST',
    ':path': PATH,
    'content-type': 'application/grpc',
    authorization: `Bearer ${TOKEN}`,
    ...headers,
  });
  const got = new Promise<IncomingHttpHeaders>((resolve, reject) => {
    const take = (each: IncomingHttpHeaders): void => {
      if (each['grpc-status'] !== undefined) resolve({ ...each, 'grpc-status': each['grpc-status'] });
    };
    stream.on('response', take).on('trailers', take).on('error', reject);
    stream.on('close', () => reject(new Error('no status')));
  });
  stream.resume();
  if (end) stream.end(body);
  else stream.write(body);
  return got;
}

function frame(message: Buffer, { flag = 0, length = message.length } = {}): Buffer {
  const head = Buffer.alloc(5);
  head[0] = flag;
  head.writeUInt32BE(length, 1);
  return Buffer.concat([head, message]);
}

const codeOf = async (made: Promise<IncomingHttpHeaders>): Promise<string> =>
  status[Number((await made)['grpc-status'])]!;

it('takes a request, and an empty one', async () => {
  expect(await codeOf(call({ body: frame(Buffer.alloc(0)) }))).toBe('OK');
  const zipped = frame(gzipSync(Buffer.alloc(0)), { flag: 1 });
  expect(await codeOf(call({ body: zipped, headers: { 'grpc-encoding': 'gzip' } }))).toBe('OK');
});

it('answers a call without the token before its message has come, and holds nothing of it', async () => {
  const headers = { authorization: 'Bearer another-token-of-length' };
  const body = frame(Buffer.alloc(60_000), { length: 30 * MIB });
  const session = dial();
  const codes = Array.from({ length: 20 }, () => codeOf(call({ body, headers, session, end: false })));
  expect(new Set(await Promise.all(codes))).toEqual(new Set(['UNAUTHENTICATED']));
  expect(budget.stats().peakBytes).toBeLessThan(MIB);
});

it('says what is wrong with a call of another kind', async () => {
  const messageOf = async (headers: Record<string, string>): Promise<string> =>
    decodeURIComponent(String((await call({ body: frame(Buffer.alloc(0)), headers }))['grpc-message']));
  expect(await messageOf({ ':method': 'PUT' })).toBe('the method is PUT: gRPC calls are POST');
  expect(await messageOf({ 'content-type': 'application/grpc-web' })).toContain(
    'content-type is "application/grpc-web": send application/grpc',
  );
  expect(await messageOf({ ':path': `/${'x'.repeat(5000)}` })).toMatch(
    /^nothing at \/x{98}…: gRPC calls go to/,
  );
});

it('cuts a connection on which nothing but refused calls comes', async () => {
  const session = dial();
  const headers = { authorization: 'Bearer another-token-of-length' };
  const ask = () => call({ body: frame(Buffer.alloc(0)), headers, session }).catch(() => undefined);
  for (let i = 0; i < 120 && !session.destroyed; i++) await ask();
  await vi.waitFor(() => expect(session.destroyed).toBe(true));
});

it('lets many large messages wait for no more than the budget, and says when to come again', async () => {
  const body = frame(Buffer.alloc(3 * MIB), { length: 3 * MIB + 1 });
  const calls = Array.from({ length: 6 }, () => call({ body, end: false }));
  const refused = await Promise.any(calls);
  expect(status[Number(refused['grpc-status'])]).toBe('UNAVAILABLE');
  expect(Buffer.from(String(refused['grpc-status-details-bin']), 'base64').toString('latin1')).toContain(
    'google.rpc.RetryInfo',
  );
  expect(budget.stats().peakBytes).toBeLessThanOrEqual(8 * MIB);
  expect(await codeOf(call({ body: frame(Buffer.alloc(0)) }))).toBe('OK');
  for (const session of sessions.splice(0)) session.destroy();
  await Promise.allSettled(calls);
  await vi.waitFor(() => expect(budget.stats().bytes).toBe(0));
});

const cut = frame(Buffer.alloc(10), { length: 11 });
it.each([
  ['announces too much', { body: frame(Buffer.alloc(10), { length: 33 * MIB }) }, 'RESOURCE_EXHAUSTED'],
  ['announces 4 GiB', { body: frame(Buffer.alloc(10), { length: 2 ** 32 - 1 }) }, 'RESOURCE_EXHAUSTED'],
  ['ends before its message', { body: cut }, 'INVALID_ARGUMENT'],
  ['ends within the head', { body: Buffer.from([0, 0]) }, 'INVALID_ARGUMENT'],
  ['is empty', { body: Buffer.alloc(0) }, 'INVALID_ARGUMENT'],
  [
    'has two messages',
    { body: Buffer.concat([frame(Buffer.alloc(2)), frame(Buffer.alloc(2))]) },
    'UNIMPLEMENTED',
  ],
  ['has another compression', { body: frame(Buffer.alloc(9), { flag: 1 }) }, 'UNIMPLEMENTED'],
  ['has an unknown flag', { body: frame(Buffer.alloc(9), { flag: 7 }) }, 'UNIMPLEMENTED'],
  ['goes to another service', { body: cut, headers: { ':path': '/x.Y/Z' } }, 'UNIMPLEMENTED'],
  ['is not gRPC', { body: cut, headers: { 'content-type': 'text/plain' } }, 'UNIMPLEMENTED'],
  [
    'is broken gzip',
    { body: frame(Buffer.alloc(9), { flag: 1 }), headers: { 'grpc-encoding': 'gzip' } },
    'INVALID_ARGUMENT',
  ],
  [
    'unpacks to more than is taken',
    {
      body: frame(gzipSync(Buffer.alloc(33 * MIB)), { flag: 1 }),
      headers: { 'grpc-encoding': 'gzip' },
    },
    'UNAVAILABLE',
  ],
] as const)('refuses a call that %s', async (_, made, code) => {
  expect(await codeOf(call(made))).toBe(code);
  await vi.waitFor(() => expect(budget.stats().bytes).toBe(0));
});
