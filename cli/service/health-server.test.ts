import { Server } from 'node:net';
import { afterEach, expect, it, vi } from 'vitest';
import { type HealthServer, startHealthServer } from './health-server.ts';

const open: HealthServer[] = [];
afterEach(() => {
  for (const each of open.splice(0)) each.close();
});

const health = {
  problem: () => problem,
  metrics: () => [{ name: 'a_total', kind: 'counter' as const, help: 'h', values: [{ value: 1 }] }],
};
let problem: string | undefined;

async function start() {
  const server = await startHealthServer('127.0.0.1:0', health);
  open.push(server);
  return async (path: string, method = 'GET') => {
    const response = await fetch(`http://${server.address}${path}`, { method });
    return [response.status, await response.text()] as const;
  };
}

it('says whether it runs, whether it does its work, and what it counts', async () => {
  const get = await start();
  expect(await get('/healthz')).toEqual([200, 'ok\n']);
  expect(await get('/readyz?x')).toEqual([200, 'ok\n']);
  problem = 'not sampling yet';
  expect(await get('/readyz')).toEqual([503, 'not sampling yet\n']);
  expect(await get('/healthz')).toEqual([200, 'ok\n']);
  expect(await get('/metrics')).toEqual([200, '# HELP a_total h\n# TYPE a_total counter\na_total 1\n']);
  expect((await get('/'))[0]).toBe(404);
  expect((await get('/metrics', 'POST'))[0]).toBe(405);
});

it('says which flag is wrong', async () => {
  await expect(startHealthServer('here', health)).rejects.toThrow(/^--metrics-address here: /);
  const first = await startHealthServer('127.0.0.1:0', health);
  open.push(first);
  await expect(startHealthServer(first.address, health)).rejects.toThrow(/EADDRINUSE/);
});

it('goes on where a connection could not be accepted', async () => {
  const listen = vi.spyOn(Server.prototype, 'listen');
  const get = await start();
  (listen.mock.contexts[0] as Server).emit(
    'error',
    Object.assign(new Error('accept ENFILE'), { syscall: 'accept' }),
  );
  listen.mockRestore();
  expect(await get('/healthz')).toEqual([200, 'ok\n']);
});
