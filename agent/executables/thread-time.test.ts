import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { readThreadCpuMs, threadName } from './thread-time.ts';

test("it is the calling thread's, in the units of the process's own clock", () => {
  const before = readThreadCpuMs(threadName())!;
  const start = process.cpuUsage();
  while (readThreadCpuMs(threadName())! < before + 100);
  const { user, system } = process.cpuUsage(start);
  // other threads' time is in the process's as well; ticks of 10 ms are counted whole
  expect((user + system) / 1000).toBeGreaterThanOrEqual(80);
});

test('that of another thread grows with what it does, not with what others do', async () => {
  const code = `
    const { parentPort } = require('node:worker_threads');
    const { readlinkSync } = require('node:fs');
    parentPort.postMessage(readlinkSync('/proc/thread-self'));
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);`;
  const worker = new Worker(code, { eval: true });
  const thread = await new Promise<string>((resolve) => worker.once('message', resolve));
  expect(thread).not.toBe(threadName());
  const own = readThreadCpuMs(threadName())!;
  const before = readThreadCpuMs(thread)!;
  while (readThreadCpuMs(threadName())! < own + 500);
  // what it still did to get to its wait
  expect(readThreadCpuMs(thread)! - before).toBeLessThan(300);
  await worker.terminate();
  expect(readThreadCpuMs(thread)).toBeUndefined();
});

test('no thread has no time', () => {
  expect(readThreadCpuMs('self/task/0')).toBeUndefined();
});
