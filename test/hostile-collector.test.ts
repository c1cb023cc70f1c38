/** A collector with a token, as its own process, against a client without one and against files that explode. */

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import type { StatusResponse } from '../collector/status/status.ts';

const MIB = 2 ** 20;
const EXPORT = '/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export';
const EVERYFRAME = fileURLToPath(new URL('../bin/everyframe', import.meta.url));
const TOKEN = 'a-token-that-nobody-guesses';
const directory = mkdtempSync(join(tmpdir(), 'everyframe-hostile-'));
let collector: ChildProcess;
const ports = { grpc: 0, http: 0, page: 0 };
const closing: (() => void)[] = [];

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
const residentMiB = (): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${collector.pid}/status`, 'utf8'))?.[1]) / 1024;
const page = (path: string, init: RequestInit = {}): Promise<Response> =>
  fetch(`http://127.0.0.1:${ports.page}/api/v1/${path}`, {
    ...init,
    headers: { ...init.headers, authorization: `Bearer ${TOKEN}` },
  });
const status = async (): Promise<StatusResponse> => (await (await page('status')).json()) as StatusResponse;

beforeAll(async () => {
  for (const name of ['grpc', 'http', 'page'] as const) ports[name] = await freePort();
  writeFileSync(join(directory, 'token'), TOKEN);
  const listen = Object.entries(ports).flatMap(([name, port]) => [`--${name}-listen`, `127.0.0.1:${port}`]);
  const args = ['collector', '--token-file', join(directory, 'token'), ...listen];
  collector = spawn(EVERYFRAME, args, { stdio: 'ignore' });
  await vi.waitFor(status, { timeout: 60_000, interval: 200 });
});

afterAll(async () => {
  for (const close of closing) close();
  const ended = new Promise((resolve) => collector.once('exit', resolve));
  collector.kill();
  await ended;
  rmSync(directory, { recursive: true });
});

/** All but the last byte of a message of 31 MiB. @returns gRPC's status; never, where the server only listens */
function hold(session: ClientHttp2Session, token: string): Promise<string> {
  const stream = session.request({
    ':method': 'POST',
    ':path': EXPORT,
    'content-type': 'application/grpc',
    te: 'trailers',
    authorization: `Bearer ${token}`,
  });
  const head = Buffer.from([0, 0x01, 0xf0, 0, 1]);
  stream.on('error', () => {}).resume();
  stream.write(Buffer.concat([head, Buffer.alloc(64 * 1024)]));
  let left = 31 * MIB - 64 * 1024;
  const send = (): void => {
    for (let fits = true; fits && left > 0 && !stream.destroyed; left -= 64 * 1024)
      fits = stream.write(Buffer.alloc(Math.min(left, 64 * 1024)));
  };
  stream.on('drain', send);
  send();
  return new Promise((resolve) =>
    stream.once('response', (headers) => resolve(String(headers['grpc-status']))),
  );
}

function dial(): ClientHttp2Session {
  const session = connectHttp2(`http://127.0.0.1:${ports.grpc}`).on('error', () => {});
  closing.push(() => session.destroy());
  return session;
}

it('holds nothing of a client without the token, and no more than its budget of one that has it', async () => {
  const before = residentMiB();
  const strangers = Array.from({ length: 6 }, dial).flatMap((session) =>
    Array.from({ length: 5 }, () => hold(session, 'another-token-of-some-length')),
  );
  expect(new Set(await Promise.all(strangers))).toEqual(new Set(['16']));
  expect((await status()).requestMemory!.peakBytes).toBeLessThan(MIB);
  expect(residentMiB()).toBeLessThan(before + 60);
  const sessions = Array.from({ length: 4 }, dial);
  const held = sessions.flatMap((session) => Array.from({ length: 3 }, () => hold(session, TOKEN)));
  expect(await Promise.any(held)).toBe('14');
  await vi.waitFor(async () => expect((await status()).requestMemory!.bytes).toBeGreaterThan(60 * MIB), {
    timeout: 20_000,
  });
  expect((await status()).requestMemory!.peakBytes).toBeLessThanOrEqual(128 * MIB);
  for (const session of sessions) session.destroy();
  await vi.waitFor(() => expect(residentMiB()).toBeLessThan(before + 60), { timeout: 30_000, interval: 500 });
});

it('cuts the oldest of too many idle connections, and answers', async () => {
  const sockets: Socket[] = [];
  for (let i = 0; i < 300; i++)
    sockets.push(
      connect(ports.http, '127.0.0.1')
        .on('error', () => {})
        .resume(),
    );
  closing.push(() => void sockets.map((socket) => socket.destroy()));
  await vi.waitFor(async () => expect((await status()).connections!.cut).toBeGreaterThanOrEqual(44), {
    timeout: 20_000,
  });
  await vi.waitFor(() =>
    expect(sockets.filter(({ destroyed }) => destroyed).length).toBeGreaterThanOrEqual(44),
  );
});

it('outlives a file that explodes, and says why it is not taken', async () => {
  const send = (name: string, body: Buffer): Promise<Response> =>
    page(`import?name=${name}`, {
      method: 'POST',
      headers: { 'content-type': 'application/octet-stream' },
      body: new Uint8Array(body),
    });
  const bomb = await send('bomb.pb.gz', gzipSync(Buffer.alloc(257 * MIB), { level: 1 }));
  expect([bomb.status, await bomb.text()]).toEqual([422, expect.stringContaining('unpacks to more than')]);
  const good = await send('good.folded', Buffer.from('p;main;f 3\n'));
  expect(await good.json()).toMatchObject({ samples: 3 });
});
