/** The clock that says what naming the frames of one process has cost: of the thread that asks. */
import { expect, test } from 'vitest';
import { loadNative } from '../agent/base/native.ts';

/** Until this process, all threads together, has used so much more CPU time. */
function burn(micros: number): void {
  const used = (): number => process.cpuUsage().user + process.cpuUsage().system;
  for (const end = used() + micros; used() < end; );
}

test('advances while its thread runs, and by no more than the process does', () => {
  const { threadCpuMicros } = loadNative();
  const [before, processBefore] = [threadCpuMicros(), process.cpuUsage()];
  burn(20_000);
  const { user, system } = process.cpuUsage(processBefore);
  const spent = threadCpuMicros() - before;
  expect(spent).toBeGreaterThan(1000);
  expect(spent).toBeLessThanOrEqual(user + system + 2000);
});

test('stands still while its thread sleeps', async () => {
  const { threadCpuMicros } = loadNative();
  const before = threadCpuMicros();
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(threadCpuMicros() - before).toBeLessThan(200_000);
});
