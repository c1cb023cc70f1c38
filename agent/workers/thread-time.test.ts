import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { readThreadCpuMs, threadId } from './thread-time.ts';

test("it is the calling thread's, in the units of the process's own clock", () => {
  const before = readThreadCpuMs(threadId())!;
  // counters are whole numbers
  expect(Number.isInteger(before)).toBe(true);
  const start = process.cpuUsage();
  while (readThreadCpuMs(threadId())! < before + 100);
  const { user, system } = process.cpuUsage(start);
  // other threads' time is in the process's as well
  expect((user + system) / 1000).toBeGreaterThanOrEqual(95);
});

test('that of another thread grows with what it does, not with what others do', async () => {
  const code = `
    const { parentPort } = require('node:worker_threads');
    const { readlinkSync } = require('node:fs');
    parentPort.postMessage(Number(readlinkSync('/proc/thread-self').split('/').at(-1)));
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);`;
  const worker = new Worker(code, { eval: true });
  const thread = await new Promise<number>((resolve) => worker.once('message', resolve));
  expect(thread).not.toBe(threadId());
  const own = readThreadCpuMs(threadId())!;
  const before = readThreadCpuMs(thread)!;
  while (readThreadCpuMs(threadId())! < own + 500);
  // what it still did to get to its wait
  expect(readThreadCpuMs(thread)! - before).toBeLessThan(300);
  await worker.terminate();
  expect(readThreadCpuMs(thread)).toBeUndefined();
});

test('no thread has no time', () => {
  expect(readThreadCpuMs(0)).toBeUndefined();
  // another process's
  expect(readThreadCpuMs(process.ppid)).toBeUndefined();
});
