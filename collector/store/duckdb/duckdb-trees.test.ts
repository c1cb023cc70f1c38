import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { DuckDBInstance } from '@duckdb/node-api';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { parseFilter } from '../../../common/profile/filters/filter.ts';
import { profileFromText } from '../../../test/browser/synthetic-profile.ts';
import { buildFlameTree } from '../../query/flame/flame-tree.ts';
import { FunctionSums } from '../../query/functions.ts';
import { takeFunctions } from '../../query/summed-parts.ts';
import { type Precision, readWindow, visitWindow } from '../../query/window.ts';
import type { StackCounts } from '../store.ts';
import { DuckDbStore } from './duckdb-store.ts';

const HOUR = 3_600_000;
const START_MS = Date.UTC(2026, 0, 1, 12);
const RANGE = { fromMs: START_MS - 9 * HOUR, toMs: START_MS + 2 * HOUR };
let nowMs: number;
let directory: string;

const open = (): Promise<DuckDbStore> =>
  DuckDbStore.open({
    directory,
    maxBytes: 2 ** 30,
    maxAgeMs: 48 * HOUR,
    now: () => nowMs,
    logger: { info: () => {}, error: (...what: unknown[]) => expect.fail(JSON.stringify(what)) },
  });

beforeEach(() => {
  nowMs = START_MS;
  directory = mkdtempSync(join(tmpdir(), 'everyframe-trees-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

/** Two lines of `hot`; `rareN` was seen once. */
const hour = (hoursAgo: number) =>
  profileFromText(
    `p:1;main@n;hot@p:/a.py:3 30000\np:1;main@n;hot@p:/a.py:4 15000\np:1;main@n;rare${hoursAgo}@n 1\nq:2;main@n 5000`,
    { endMs: START_MS - hoursAgo * HOUR, spanMs: 60_000 },
  );

/** Runs SQL while no store has the file; the last statement's rows. */
async function change(sql: string): Promise<number[][]> {
  const instance = await DuckDBInstance.create(join(directory, 'everyframe.duckdb'));
  const connection = await instance.connect();
  const reader = await connection.runAndReadAll(sql);
  connection.closeSync();
  instance.closeSync();
  return reader.getRows().map((row) => row.map(Number));
}

/** Complete parts have been summed once nothing is left to be. */
async function sumAll(store: DuckDbStore): Promise<void> {
  for (await store.flush(); store.partsToSum > 0; await store.flush()) await setImmediate();
}

async function fill(hours: readonly number[], make = hour): Promise<DuckDbStore> {
  const store = await open();
  for (const ago of hours) store.append(make(ago));
  await store.close();
  const again = await open();
  expect(again.partsToSum).toBe(hours.length);
  await sumAll(again);
  return again;
}

/** Boxes as `path events`, those that were folded included. */
function draw(parts: readonly StackCounts[]): string[] {
  const { frames, parents, nodeFrames, selfCounts } = buildFlameTree(parts);
  const paths: string[] = [];
  for (const [node, parent] of parents.entries())
    paths[node] = node === 0 ? '' : `${paths[parent]};${frames[nodeFrames[node]!]!.name}`;
  return paths
    .map((path, node) => `${path} ${selfCounts[node]}`)
    .filter((line) => !line.endsWith(' 0'))
    .sort();
}

async function picture(store: DuckDbStore, where: string, precision: Precision): Promise<string[]> {
  const window = await readWindow(store, { ...RANGE, where: parseFilter(where) }, 1, { precision });
  return draw(window.parts);
}

const SHOWN = [';p;main;(other) 3', ';p;main;hot 135000', ';q;main 15000'];

it('makes pictures of complete hours from sums, with all events, also after a restart', async () => {
  let store = await fill([3, 2, 1]);
  for (const when of ['made', 'read again']) {
    expect(await picture(store, '', 'shown'), when).toEqual(SHOWN);
    expect(await picture(store, 'process=p', 'shown'), when).toEqual(SHOWN.slice(0, 2));
    await store.close();
    store = await open();
    expect(store.partsToSum).toBe(0);
  }
  await store.close();
});

it('reads every stack where that is asked, where more than processes is, and where sums would be too rough', async () => {
  const store = await fill([2, 1]);
  const rare = ';p;main;rare2 1';
  const { parts } = await readWindow(store, { ...RANGE, where: [] }, 1);
  const { frames } = parts[0]!;
  expect(frames.map(({ name }) => name)).toContain('rare2');
  expect(await picture(store, 'process=p frame=rare2', 'shown')).toEqual([rare]);
  // a part's only event of a box would be 1/10,000 of what is wanted
  expect(await picture(store, 'process=q', 'shown')).toEqual([';q;main 10000']);
  const late = { fromMs: START_MS - 2 * HOUR - 1, toMs: START_MS + HOUR, where: [] };
  const some = await readWindow(store, late, 1, { precision: 'shown' });
  expect(some.samples).toBeLessThan(60_000);
  await store.close();
});

/** As the API does it: events in each function and in it or below, and the parts of which stacks were read. */
async function functionsOf(store: DuckDbStore, where: string, usesSums: boolean) {
  const filter = { ...RANGE, where: parseFilter(where) };
  const sums = new FunctionSums();
  let read = 0;
  const visit = (part: StackCounts): void => {
    read++;
    sums.add(part);
  };
  await visitWindow(store, filter, 1, visit, {
    takeSums: async (part) => usesSums && takeFunctions(part, filter, sums),
  });
  return { read, ...sums.rank(100, 'total') };
}

/** `again` calls itself and occurs in two processes, and each hour has a function that was seen once. */
const recursion = (hoursAgo: number) =>
  profileFromText(
    `p:1;main@n;again@n;leaf@n;again@n 700\np:1;main@n;again@n 300\nq:2;again@n 90\nq:2;once${hoursAgo}@n 1`,
    { endMs: START_MS - hoursAgo * HOUR, spanMs: 60_000 },
  );

it('has the events of each function of complete hours without reading a stack, exactly, also after a restart', async () => {
  let store = await fill([3, 2, 1], recursion);
  store.append(recursion(0));
  await store.flush();
  for (const [when, unsummed] of [
    ['made', 1],
    ['read again', 0],
  ] as const) {
    for (const [where, again] of [
      ['', 4360],
      ['process=p', 4000],
      ['process!=p', 360],
    ] as const) {
      const exact = await functionsOf(store, where, false);
      const found = await functionsOf(store, where, true);
      expect(found.functions, when).toEqual(exact.functions);
      expect(found.functions.find(({ name }) => name === 'again')?.total).toBe(again);
      expect([exact.read, found.read]).toEqual([4, unsummed]);
      expect(found.count).toBe(exact.count);
    }
    expect((await functionsOf(store, 'thread=x', true)).functions).toEqual([]);
    await store.close();
    store = await open();
  }
  await store.close();
});

it('reads the stacks of hours that an earlier version summed', async () => {
  let store = await fill([1], recursion);
  const found = await functionsOf(store, '', true);
  await store.close();
  await change(`DROP TABLE events_1; ALTER TABLE trees DROP has_functions; ALTER TABLE groups_1 DROP attributes; DROP TABLE types; DROP TABLE linked_parts;
    UPDATE meta SET schema_version = 7`);
  store = await open();
  expect(await functionsOf(store, '', true)).toEqual({ ...found, read: 1 });
  await store.close();
});

it('has samples that came after their hour was summed', async () => {
  const store = await fill([3, 2]);
  store.append(profileFromText('p:1;main@n;late@n 5000', { endMs: START_MS - 2 * HOUR, spanMs: 1 }));
  await store.flush();
  expect(await picture(store, '', 'shown')).toEqual([
    ';p;main;(other) 2',
    ';p;main;hot 90000',
    ';p;main;late 5000',
    ';q;main 10000',
  ]);
  await store.close();
});

it('drops sums with their samples, and functions that no other has', async () => {
  const store = await fill([30, 29]);
  store.append(hour(0));
  nowMs = START_MS + 20 * HOUR;
  await store.flush();
  expect(store.stats().droppedForAge).toBe(100_002);
  await store.close();
  const left = await change(`SELECT (SELECT count(*) FROM trees), (SELECT count(*) FROM functions),
    (SELECT count(*) FROM duckdb_tables() WHERE table_name SIMILAR TO '(tree|events)_.*')`);
  expect(left).toEqual([[0, 0, 0]]);
});
