import { expect, test } from 'vitest';
import { CALM_LOOKS, MemoryBudget, TARGET } from './memory-budget.ts';

const MIB = 1 << 20;

/** With what it aims at, MiB. */
function budget(targetMib: number) {
  const state = { fixed: 60 * MIB, free: 0, caches: 0, tables: 0, tableLimit: 128 * MIB };
  const warnings: string[] = [];
  const subject = new MemoryBudget(
    { maxBytes: (targetMib * MIB) / TARGET, maxTableBytes: state.tableLimit },
    {
      residentBytes: () => state.fixed + state.free + state.caches,
      mapBytes: () => 10 * MIB + state.tables,
      releaseFreeMemory() {
        state.free = 0;
      },
      async dropCaches() {
        state.caches = 0;
      },
      tableBytes: () => state.tables,
      limitTables: async (bytes) => {
        state.tableLimit = bytes;
        state.tables = Math.min(state.tables, bytes);
      },
    },
    (message) => warnings.push(message),
  );
  const checkCalmly = async (): Promise<void> => {
    for (let i = 0; i < CALM_LOOKS; i++) await subject.check();
  };
  return { state, warnings, subject, checkCalmly };
}

test('inside the budget nothing is given up', async () => {
  const { state, subject, checkCalmly } = budget(256);
  Object.assign(state, { free: 20 * MIB, caches: 50 * MIB, tables: 100 * MIB });
  await checkCalmly();
  expect(state).toMatchObject({ free: 20 * MIB, caches: 50 * MIB, tables: 100 * MIB });
  expect(subject.stats).toMatchObject({ usedBytes: 240 * MIB, cachesDropped: 0 });
});

test('free memory goes first, then caches, then tables, as far as it takes', async () => {
  const { state, subject, checkCalmly } = budget(100);
  Object.assign(state, { free: 1 * MIB, caches: 5 * MIB, tables: 30 * MIB });
  await checkCalmly();
  expect(state).toMatchObject({ free: 0, caches: 0, tables: 30 * MIB });
  expect(subject.stats.timesOver).toBe(0);
  await checkCalmly();
  // exactly full
  expect(state.tables).toBe(30 * MIB);
  state.fixed += 3 * MIB;
  await checkCalmly();
  await checkCalmly();
  expect(state).toMatchObject({ tables: 27 * MIB, tableLimit: 27 * MIB });
  await checkCalmly();
  expect(subject.stats).toMatchObject({ usedBytes: 100 * MIB, cachesDropped: 2, tablesLimited: 1 });
});

test('tables may grow again once there is room', async () => {
  const { state, checkCalmly } = budget(100);
  state.tables = 60 * MIB;
  await checkCalmly();
  await checkCalmly();
  expect(state.tableLimit).toBe(30 * MIB);
  state.tables = 8 * MIB;
  await checkCalmly();
  expect(state.tableLimit).toBe(37.5 * MIB);
  for (let i = 0; i < 20; i++) await checkCalmly();
  expect(state.tableLimit).toBe(128 * MIB);
});

test('a budget that is too small is said once, with what is in use', async () => {
  const { state, warnings, subject, checkCalmly } = budget(45);
  state.tables = 20 * MIB;
  for (let i = 0; i < 10; i++) await checkCalmly();
  expect(subject.stats.timesOver).toBe(10 * CALM_LOOKS);
  expect(state.tables).toBe(3.515625 * MIB);
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toMatch(/^74 MiB are in use.*--max-memory 57: give it more$/);
});

test('what is above the budget itself is given up at the first look, caches and tables', async () => {
  const { state, subject } = budget(100);
  Object.assign(state, { fixed: 40 * MIB, caches: 5 * MIB, tables: 90 * MIB });
  await subject.check();
  expect(state).toMatchObject({ caches: 0, tables: 50 * MIB });
  // caches are left alone for a while: they would be filled all the time
  Object.assign(state, { fixed: 70 * MIB, caches: 5 * MIB });
  await subject.check();
  expect(state).toMatchObject({ caches: 5 * MIB, tables: 15 * MIB });
});

test('what is nearly above the budget is given up at the first look, too', async () => {
  const { state, subject } = budget(100);
  Object.assign(state, { caches: 15 * MIB, tables: 30 * MIB });
  await subject.check();
  expect(state).toMatchObject({ caches: 0, tables: 30 * MIB });
  state.caches = 15 * MIB;
  await subject.check();
  expect(state).toMatchObject({ caches: 15 * MIB, tables: 15 * MIB });
  expect(subject.stats).toMatchObject({ timesOver: 0, cachesDropped: 1, tablesLimited: 1 });
});
