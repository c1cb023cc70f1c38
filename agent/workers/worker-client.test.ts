import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import type { WorkKind } from './protocol.ts';
import { WorkerClient } from './worker-client.ts';
import { WorkerFailure } from './worker-failure.ts';
import { WorkerPool, type WorkerPoolOptions } from './worker-pool.ts';

/** A worker that does what its request says. */
const code = `
  const { writeFileSync } = require('node:fs');
  const wait = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
  let served = 0;
  let leaves;
  process.on('message', ({ id, request, end, data }) => {
    if (data) return;
    if (end && leaves) writeFileSync(leaves, 'done');
    if (end) return leaves === '' || process.exit(0);
    if (request.startsWith('leave ')) leaves = request.slice('leave '.length);
    if (request === 'exit') process.exit(3);
    if (request === 'throw') throw new Error('on purpose');
    if (request === 'kill') process.kill(process.pid, 'SIGSEGV');
    if (request === 'hang') for (;;);
    if (request === 'wait') wait(2000);
    if (request === 'block') wait();
    if (request === 'grow') { const all = []; for (;;) all.push(new Array(1e5).fill({})); }
    if (request === 'fill') { const all = []; for (;;) all.push(Buffer.alloc(1 << 20, 1)); }
    if (request === 'note') process.send({ id, note: 'soon' });
    process.send(request === 'refuse' ? { id, error: 'no' } : { id, answer: [request, ++served] });
  });`;
const command = [process.execPath, '--max-old-space-size=32', '-e', code] as const;
const data = { cache: undefined, scratch: undefined, detail: 'full', maxMemory: 0, version: '' } as const;

type Client = WorkerClient<string, [string, number], string>;

const all: { client: Client; pool: WorkerPool }[] = [];
const createPool = (options: Partial<WorkerPoolOptions> = {}) =>
  new WorkerPool({ command, data, maxBytes: 256 << 20, idleMs: 60_000, ...options });
function create(maxCpuMs = 60_000, pool = createPool(), kind: WorkKind = 'table') {
  const client: Client = new WorkerClient(pool, { kind, maxCpuMs, maxWaitMs: 20 * maxCpuMs });
  all.push({ client, pool });
  return { client, pool };
}
afterEach(async () => {
  for (const { client, pool } of all.splice(0)) {
    await client.stop();
    await pool.stop();
  }
});

test('a process that can not be made is tried again, with pauses', async () => {
  // the kernel takes no argument of more than 128 KiB, as it makes no process without memory or descriptors
  const options = { command: [process.execPath, '-e', ' '.repeat(1 << 18)] as const, maxWaitMs: 20 };
  const { client, pool } = create(1000, createPool(options));
  const answer = client.request('a');
  answer.catch(() => {});
  await vi.waitFor(() => expect(pool.stats.failed).toBe(2), 5000);
  expect(client.pending).toBe(1);
  expect(pool.size).toBe(0);
});

test('answers come in order, from one worker', async () => {
  const { client, pool } = create();
  const answers = await Promise.all(['a', 'b', 'c'].map((request) => client.request(request)));
  expect(answers).toEqual([
    ['a', 1],
    ['b', 2],
    ['c', 3],
  ]);
  expect(pool.stats.started).toBe(1);
});

test('what is known before the answer comes before it', async () => {
  const { client } = create();
  const events: unknown[] = [];
  events.push(await client.request('note', (note) => events.push(note)));
  expect(events).toEqual(['soon', ['note', 1]]);
});

test.each([
  ['exit', 'crashed'],
  ['throw', 'crashed'],
  ['kill', 'crashed'],
  ['grow', 'memory'],
  ['fill', 'memory'],
])('a request that takes the worker down (%s) costs only itself', async (bad, reason) => {
  const { client, pool } = create();
  const [before, lost, after] = await Promise.allSettled(
    ['a', bad, 'b'].map((request) => client.request(request)),
  );
  expect(before).toMatchObject({ value: ['a', 1] });
  expect(lost).toMatchObject({ reason: { name: 'WorkerFailure', reason } });
  expect(after).toMatchObject({ value: ['b', 1] });
  expect(client.stats.crashed).toBe(1);
  expect(pool.stats.started).toBe(2);
});

test('where no worker can be started that is the failure of the request, and of those that come later', async () => {
  const { client, pool } = create(60_000, createPool({ command: ['/nowhere'] }));
  const [first, second] = await Promise.allSettled([client.request('a'), client.request('b')]);
  expect(first).toMatchObject({ reason: { reason: 'crashed', message: expect.stringContaining('ENOENT') } });
  expect(second).toMatchObject({ reason: { reason: 'crashed' } });
  expect(pool.size).toBe(0);
});

test('a request that never ends is ended', async () => {
  const { client } = create(3000);
  const hanging = client.request('hang');
  const next = client.request('a');
  await expect(hanging).rejects.toMatchObject({ reason: 'timeout' });
  expect(await next).toEqual(['a', 1]);
  // of this one request; ticks of 10 ms are counted whole
  expect(client.stats.slowestCpuMs).toBeGreaterThan(2900);
  expect(client.stats.cpuMs).toBeGreaterThanOrEqual(client.stats.slowestCpuMs);
});

test('a request may take long that has no CPU, its own CPU time counts', async () => {
  const { client, pool } = create(1000);
  await expect(client.request('wait')).resolves.toEqual(['wait', 1]);
  expect(client.stats.timeouts).toBe(0);
  expect(pool.stats.started).toBe(1);
});

test('a request that waits for ever is ended', async () => {
  const { client } = create(100);
  await expect(client.request('block')).rejects.toMatchObject({ reason: 'timeout' });
});

test('one that waits for something that never comes is ended long before its time is over', async () => {
  const { client } = create(60_000, createPool({ maxStallMs: 500 }));
  await expect(client.request('block')).rejects.toMatchObject({ reason: 'stalled' });
});

test('a refused request leaves the worker as it was', async () => {
  const { client, pool } = create();
  await expect(client.request('refuse')).rejects.toThrow('no');
  expect(await client.request('a')).toEqual(['a', 1]);
  expect(pool.stats.started).toBe(1);
});

test('an idle worker ends, and another one starts when needed', async () => {
  const { client, pool } = create(60_000, createPool({ idleMs: 1 }));
  await client.request('a');
  await vi.waitFor(() => expect(pool.size).toBe(0), 15_000);
  expect(await client.request('b')).toEqual(['b', 1]);
  expect(client.stats.crashed).toBe(0);
  expect(pool.stats.started).toBe(2);
});

test('a worker that is released ends behind the request that it has, and another one goes on', async () => {
  const { client, pool } = create();
  const answers = ['a', 'b', 'c'].map((request) => client.request(request));
  pool.release();
  expect(await Promise.all(answers)).toEqual([
    ['a', 1],
    ['b', 1],
    ['c', 2],
  ]);
  pool.release();
  expect(pool.size).toBe(0);
  expect(await client.request('d')).toEqual(['d', 1]);
  expect(client.stats.crashed).toBe(0);
  expect(pool.stats.started).toBe(3);
});

test('a worker writes what it leaves before it ends', async () => {
  const { client, pool } = create();
  const path = join(mkdtempSync(join(tmpdir(), 'everyframe-worker-')), 'left');
  await client.request(`leave ${path}`);
  await pool.stop();
  expect(readFileSync(path, 'utf8')).toBe('done');
  rmSync(dirname(path), { recursive: true });
});

test('a worker that does not end by itself is ended', async () => {
  const { client, pool } = create();
  await client.request('leave ');
  await pool.stop();
  expect(pool.size).toBe(0);
});

test('stopping rejects what waits, and what comes later', async () => {
  const { client, pool } = create();
  const waiting = [client.request('hang'), client.request('a')].map((request) =>
    request.catch((error) => error),
  );
  await client.stop();
  for (const error of await Promise.all(waiting)) expect(error).toBeInstanceOf(WorkerFailure);
  expect(client.pending).toBe(0);
  await expect(client.request('a')).rejects.toMatchObject({ reason: 'stopped' });
  expect(pool.size).toBe(0);
});

test('one worker does all kinds of work when it has the time', async () => {
  const pool = createPool({ maxWaitMs: 60_000 });
  const [tables, symbols] = [create(60_000, pool).client, create(60_000, pool, 'symbols').client];
  const answers = await Promise.all([tables, symbols, tables, symbols].map((client) => client.request('a')));
  expect(answers.map(([, served]) => served).sort()).toEqual([1, 2, 3, 4]);
  expect(pool.stats.started).toBe(1);
});

test('nothing waits long behind work of another kind', async () => {
  const pool = createPool({ maxWaitMs: 1 });
  const [tables, symbols] = [create(60_000, pool).client, create(60_000, pool, 'symbols').client];
  const hanging = tables.request('hang').catch((error) => error);
  expect(await symbols.request('a')).toEqual(['a', 1]);
  expect(await symbols.request('b')).toEqual(['b', 2]);
  expect(pool.stats.started).toBe(2);
  await tables.stop();
  expect(await hanging).toMatchObject({ reason: 'stopped' });
  expect(await symbols.request('c')).toEqual(['c', 3]);
});

test('a worker that has no CPU is not a reason to start another one', async () => {
  const pool = createPool({ maxWaitMs: 500 });
  const [tables, symbols] = [create(60_000, pool).client, create(60_000, pool, 'symbols').client];
  const [, answer] = await Promise.all([tables.request('wait'), symbols.request('a')]);
  expect(answer).toEqual(['a', 2]);
  expect(pool.stats.started).toBe(1);
});

test('as long as several workers are needed each keeps its kind of work, for the files that it holds', async () => {
  const pool = createPool({ maxWaitMs: 1 });
  const [tables, symbols] = [create(60_000, pool).client, create(60_000, pool, 'symbols').client];
  await Promise.all([tables.request('wait'), symbols.request('a')]);
  expect(pool.size).toBe(2);
  for (let i = 2; i < 5; i++) {
    expect(await tables.request('a')).toEqual(['a', i]);
    expect(await symbols.request('a')).toEqual(['a', i]);
  }
});

test('later one of them does it all, and the other one ends', async () => {
  const pool = createPool({ maxWaitMs: 1, calmMs: 0, idleMs: 4000 });
  const [tables, symbols] = [create(60_000, pool).client, create(60_000, pool, 'symbols').client];
  await Promise.all([tables.request('wait'), symbols.request('a')]);
  expect(pool.size).toBe(2);
  await vi.waitFor(async () => {
    await symbols.request('a');
    await tables.request('a');
    expect(pool.size).toBe(1);
  }, 20_000);
  expect(pool.stats.started).toBe(2);
});

test('one that is not the only one ends long before the last one does', async () => {
  const pool = createPool({ maxWaitMs: 1, extraIdleMs: 200 });
  const [tables, symbols] = [create(60_000, pool).client, create(60_000, pool, 'symbols').client];
  await Promise.all([tables.request('wait'), symbols.request('a')]);
  expect(pool.stats.started).toBe(2);
  await vi.waitFor(() => expect(pool.size).toBe(1), 10_000);
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(pool.size).toBe(1);
  expect(pool.stats.started).toBe(2);
});

test('the last one ends, too, if it was not the only one', async () => {
  const pool = createPool({ maxWaitMs: 1, extraIdleMs: 2500, idleMs: 3000 });
  const [tables, symbols] = [create(60_000, pool).client, create(60_000, pool, 'symbols').client];
  await Promise.all([tables.request('wait'), symbols.request('a')]);
  expect(pool.stats.started).toBe(2);
  await vi.waitFor(() => expect(pool.size).toBe(1), 10_000);
  await vi.waitFor(() => expect(pool.size).toBe(0), 15_000);
});
