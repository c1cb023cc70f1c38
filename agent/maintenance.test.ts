import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Maintenance } from './maintenance.ts';
import { IdleTables } from './tracer/idle-tables.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function setUp() {
  const done = { cpu: 0, looks: 0, memory: 0, sweeps: 0, released: 0, code: 0 };
  const warnings: string[] = [];
  let check = async (): Promise<void> => {};
  const maintenance = new Maintenance({
    cpu: { check: () => void done.cpu++ },
    memory: {
      check: () => {
        done.memory++;
        return check();
      },
    },
    tables: { dropIdle: async () => void done.sweeps++ },
    idleTables: new IdleTables(async () => true),
    native: { releaseFreeMemory: () => void done.released++, releaseCode: () => void done.code++ },
    look: () => void done.looks++,
    warn: (message) => void warnings.push(message),
  });
  const onMemory = (made: typeof check): void => {
    check = made;
  };
  return { done, warnings, maintenance, onMemory };
}

it('looks at the limits each second until it is stopped', async () => {
  const { done, maintenance } = setUp();
  maintenance.start();
  await vi.advanceTimersByTimeAsync(3000);
  expect(done).toMatchObject({ cpu: 3, looks: 3, memory: 3 });
  maintenance.stop();
  await vi.advanceTimersByTimeAsync(3000);
  expect(done).toMatchObject({ cpu: 3, looks: 3, memory: 3 });
});

it('gives memory up once at a time, and says what stood in the way', async () => {
  const { done, warnings, maintenance, onMemory } = setUp();
  let fail = (_: Error): void => {};
  onMemory(() => new Promise((_, reject) => (fail = reject)));
  maintenance.start();
  await vi.advanceTimersByTimeAsync(3000);
  expect(done).toMatchObject({ cpu: 3, memory: 1 });
  fail(new Error('no thread'));
  await vi.advanceTimersByTimeAsync(1000);
  expect([done.memory, warnings]).toEqual([2, ["memory can't be given up: no thread"]]);
});

it('sweeps tables after 30 seconds, and not while memory is given up', async () => {
  const { done, maintenance, onMemory } = setUp();
  maintenance.afterInterval();
  expect(done).toMatchObject({ sweeps: 0, released: 0 });
  let finish = (): void => {};
  onMemory(() => new Promise((resolve) => (finish = resolve)));
  maintenance.start();
  await vi.advanceTimersByTimeAsync(30_000);
  maintenance.afterInterval();
  await vi.advanceTimersByTimeAsync(0);
  expect(done.sweeps).toBe(0);
  maintenance.stop();
  finish();
  await maintenance.settled();
  expect(done.sweeps).toBe(1);
});

it('gives free memory back every ten seconds, and code less and less often', async () => {
  const { done, maintenance } = setUp();
  for (let second = 0; second < 70; second += 5) {
    await vi.advanceTimersByTimeAsync(5000);
    maintenance.afterInterval();
  }
  expect(done).toMatchObject({ released: 7, code: 2 });
});
