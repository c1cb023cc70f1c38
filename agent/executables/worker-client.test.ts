import { afterEach, expect, test, vi } from 'vitest';
import { WorkerClient, WorkerFailure } from './worker-client.ts';

/** A worker that does what its request says. */
const code = `
  import { readlinkSync } from 'node:fs';
  import { parentPort } from 'node:worker_threads';
  const wait = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
  let served = 0;
  parentPort.postMessage({ thread: Number(readlinkSync('/proc/thread-self').split('/').at(-1)) });
  parentPort.on('message', ({ id, request }) => {
    if (request === 'exit') process.exit(3);
    if (request === 'throw') throw new Error('on purpose');
    if (request === 'hang') for (;;);
    if (request === 'wait') wait(2000);
    if (request === 'block') wait();
    if (request === 'grow') { const all = []; for (;;) all.push(new Array(1e5).fill({})); }
    parentPort.postMessage(request === 'refuse' ? { id, error: 'no' } : { id, answer: [request, ++served] });
  });`;
const url = new URL(`data:text/javascript,${encodeURIComponent(code)}`);

const clients: WorkerClient<string, [string, number]>[] = [];
const create = (idleMs = 60_000, maxCpuMs = 60_000) => {
  const maxWaitMs = 20 * maxCpuMs;
  const client = new WorkerClient<string, [string, number]>({
    ...{ url, idleMs, maxCpuMs, maxWaitMs, maxHeapMb: 32 },
  });
  clients.push(client);
  return client;
};
afterEach(async () => {
  for (const client of clients.splice(0)) await client.stop();
});

test('answers come in order, from one worker', async () => {
  const client = create();
  const answers = await Promise.all(['a', 'b', 'c'].map((request) => client.request(request)));
  expect(answers).toEqual([
    ['a', 1],
    ['b', 2],
    ['c', 3],
  ]);
  expect(client.stats.started).toBe(1);
});

test.each(['exit', 'throw', 'grow'])(
  'a request that takes the worker down (%s) costs only itself',
  async (bad) => {
    const client = create();
    const [before, lost, after] = await Promise.allSettled(
      ['a', bad, 'b'].map((request) => client.request(request)),
    );
    expect(before).toMatchObject({ value: ['a', 1] });
    expect(lost).toMatchObject({ reason: { name: 'WorkerFailure', reason: 'crashed' } });
    expect(after).toMatchObject({ value: ['b', 1] });
    expect(client.stats).toMatchObject({ started: 2, crashed: 1 });
  },
);

test('a request that never ends is ended', async () => {
  const client = create(60_000, 3000);
  const hanging = client.request('hang');
  const next = client.request('a');
  await expect(hanging).rejects.toMatchObject({ reason: 'timeout' });
  expect(await next).toEqual(['a', 1]);
  // of this one request; ticks of 10 ms are counted whole
  expect(client.stats.slowestCpuMs).toBeGreaterThan(2900);
  expect(client.stats.cpuMs).toBeGreaterThanOrEqual(client.stats.slowestCpuMs);
});

test('a request may take long that has no CPU, its own CPU time counts', async () => {
  const client = create(60_000, 1000);
  await expect(client.request('wait')).resolves.toEqual(['wait', 1]);
  expect(client.stats).toMatchObject({ started: 1, timeouts: 0 });
});

test('a request that waits for ever is ended', async () => {
  const client = create(60_000, 100);
  await expect(client.request('block')).rejects.toMatchObject({ reason: 'timeout' });
});

test('a refused request leaves the worker as it was', async () => {
  const client = create();
  await expect(client.request('refuse')).rejects.toThrow('no');
  expect(await client.request('a')).toEqual(['a', 1]);
  expect(client.stats.started).toBe(1);
});

test('an idle worker ends, and another one starts when needed', async () => {
  const client = create(1);
  await client.request('a');
  await vi.waitFor(() => expect(client.isRunning).toBe(false), 10_000);
  expect(await client.request('b')).toEqual(['b', 1]);
  expect(client.stats).toMatchObject({ started: 2, crashed: 0 });
});

test('a worker that is released ends behind the request that it has, and another one goes on', async () => {
  const client = create();
  const answers = ['a', 'b', 'c'].map((request) => client.request(request));
  client.release();
  expect(await Promise.all(answers)).toEqual([
    ['a', 1],
    ['b', 1],
    ['c', 2],
  ]);
  client.release();
  await vi.waitFor(() => expect(client.isRunning).toBe(false), 10_000);
  expect(await client.request('d')).toEqual(['d', 1]);
  expect(client.stats).toMatchObject({ started: 3, crashed: 0 });
});

test('stopping rejects what waits, and what comes later', async () => {
  const client = create();
  const waiting = [client.request('hang'), client.request('a')].map((request) =>
    request.catch((error) => error),
  );
  await client.stop();
  for (const error of await Promise.all(waiting)) expect(error).toBeInstanceOf(WorkerFailure);
  expect(client.pending).toBe(0);
  await expect(client.request('a')).rejects.toMatchObject({ reason: 'stopped' });
  expect(client.isRunning).toBe(false);
});
