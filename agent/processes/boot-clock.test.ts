import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createBootClock } from './boot-clock.ts';

/** CLOCK_REALTIME at boot, seconds since the Unix epoch, as the kernel computes it. */
const bootTime = () => Number(/^btime (\d+)$/m.exec(readFileSync('/proc/stat', 'utf8'))![1]);

test('boottime 0 is when the machine started', () => {
  const boot = Number(createBootClock().toUnixNanos(0n) / 1_000_000n) / 1000;
  expect(Math.abs(boot - bootTime())).toBeLessThan(2);
});

test('time that the machine slept counts', () => {
  const proc = mkdtempSync(join(tmpdir(), 'proc-'));
  const hour = 3600n * 1_000_000_000n;
  const uptime = Number((process.hrtime.bigint() + hour) / 10_000_000n) / 100;
  writeFileSync(join(proc, 'uptime'), `${uptime.toFixed(2)} 1.00\n`);
  const slept = createBootClock('/proc').toUnixNanos(0n) - createBootClock(proc).toUnixNanos(0n);
  rmSync(proc, { recursive: true });
  expect(Math.abs(Number(slept - hour) / 1e9)).toBeLessThan(1);
});

test('without /proc/uptime the monotonic clock is taken', () => {
  const difference =
    createBootClock('/nonexistent').toUnixNanos(5n) - createBootClock('/proc').toUnixNanos(5n);
  // this machine may have slept; then only the order is known
  expect(difference).toBeGreaterThan(-1_000_000_000n);
});
