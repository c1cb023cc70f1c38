import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import fc from 'fast-check';
import { afterEach, expect, it, vi } from 'vitest';
import { parseFilter } from '../../../common/profile/filters/filter.ts';
import { profileFromText } from '../../../test/browser/synthetic-profile.ts';
import type { Place } from '../../../test/support/store-attributes.ts';
import { testStoreThatLasts } from '../../../test/support/store-contract.ts';
import { linkedProfile, testLinks } from '../../../test/support/store-links.ts';
import { typedProfile } from '../../../test/support/typed-profile.ts';
import { countLines } from '../../query/source-lines.ts';
import { readTimeline } from '../../query/timeline.ts';
import { readValues } from '../../query/values.ts';
import { readWindow } from '../../query/window.ts';
import { MemoryStore } from '../memory/memory-store.ts';
import { PartDropped, type Store } from '../store.ts';
import { CPU_TYPE } from '../stored-type.ts';
import { migrate } from './duckdb-schema.ts';
import { DuckDbStore } from './duckdb-store.ts';

const HOUR = 3_600_000;
const START_MS = Date.UTC(2026, 0, 1, 12);
let nowMs = START_MS;
const now = (): number => nowMs;
const directories: string[] = [];
const logger = {
  info: () => {},
  error: (...what: unknown[]) =>
    expect.fail(JSON.stringify(what, (_, v) => (v instanceof Error ? String(v) : v))),
};

const makeDirectory = (): string => {
  const directory = mkdtempSync(join(tmpdir(), 'everyframe-store-'));
  directories.push(directory);
  return directory;
};
const open = (directory: string, changes = {}): Promise<DuckDbStore> =>
  DuckDbStore.open({ directory, maxBytes: 2 ** 30, maxAgeMs: 48 * HOUR, now, logger, ...changes });

afterEach(() => {
  nowMs = START_MS;
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true });
});

const makePlace = (): Place => {
  const directory = makeDirectory();
  return { open: () => open(directory) };
};
testStoreThatLasts(now, makePlace);
testLinks(now, makePlace);

it('takes samples with links into a file of the version without them, and reads what it has', async () => {
  const directory = makeDirectory();
  const old = await open(directory);
  old.append(profileFromText('sh:1;main@n 5', { endMs: nowMs, spanMs: 1000 }));
  await old.close();
  await alter(directory, 'DROP TABLE linked_parts; UPDATE meta SET schema_version = 10');
  const link = { traceId: 'ab'.repeat(16), spanId: 'cd'.repeat(8) };
  const store = await open(directory);
  store.append(linkedProfile('sh:1;main@n 4', nowMs, link));
  await store.close();
  const again = await open(directory);
  const range = { fromMs: START_MS - HOUR, toMs: START_MS + HOUR, where: [] };
  expect(await readValues(again, range, 'trace_id')).toEqual([
    { value: '', samples: 5 },
    { value: link.traceId, samples: 4 },
  ]);
  await again.close();
});

it('gives the room of links back with their part, and has none of them where there are none', async () => {
  const directory = makeDirectory();
  const store = await open(directory, { maxAgeMs: 2 * HOUR });
  store.append(linkedProfile('sh:1;main@n 4', nowMs, { traceId: 'ab'.repeat(16), spanId: '' }));
  await store.commit();
  nowMs += 5 * HOUR;
  store.append(linkedProfile('sh:1;main@n 4', nowMs));
  await store.close();
  await (await open(directory, { maxAgeMs: 2 * HOUR })).close();
  const columns = await withFile(join(directory, 'everyframe.duckdb'), async (connection) =>
    (
      await connection.runAndReadAll(
        "SELECT table_name FROM duckdb_columns() WHERE column_name LIKE '%link%' OR column_name LIKE '%trace%'",
      )
    ).getColumns(),
  );
  expect(columns).toEqual([]);
});

it.each(['while they are written', 'after a restart'])(
  'has the same timeline from sums as from single samples, wherever ranges and steps begin, %s',
  async (when) => {
    const directory = makeDirectory();
    const memory = new MemoryStore({ maxBytes: 2 ** 28, maxAgeMs: 48 * HOUR, now });
    let store = await open(directory);
    for (const [index, spanMs] of [90 * 60_000, 70_000, 40_000].entries()) {
      const text = 'p:1;a@n 700\nq:2;a@n;b@k 400\np:3;c@n 200';
      const profile = profileFromText(text, { endMs: START_MS - index, spanMs, host: `h${index}` });
      store.append(profile);
      memory.append(profile);
      await store.flush();
    }
    if (when === 'after a restart') {
      await store.close();
      store = await open(directory);
    }
    const range = fc.record({
      agoMs: fc.oneof(
        fc.nat(2 * HOUR),
        fc.nat(12).map((tens) => tens * 10_000),
      ),
      stepMs: fc.oneof(
        fc.double({ min: 1, max: 200_000, noNaN: true }),
        fc.double({ min: 200_000, max: 900_000, noNaN: true }),
        fc.constantFrom(5000, 10_000, 30_000, 60_000),
      ),
      steps: fc.integer({ min: 1, max: 300 }),
    });
    const asked = fc.tuple(
      range,
      fc.constantFrom('', 'process=p', 'host!=h1 pid=2,3'),
      fc.constantFrom(undefined, 'process' as const),
    );
    await fc.assert(
      fc.asyncProperty(asked, async ([{ agoMs, stepMs, steps }, text, by]) => {
        const fromMs = START_MS - agoMs;
        const filter = { fromMs, toMs: Math.ceil(fromMs + stepMs * steps), where: parseFilter(text) };
        const sorted = async (of: Store) =>
          [...(await readTimeline(of, filter, steps, by))].map(([k, v]) => [k, ...v]).sort();
        expect(await sorted(store)).toEqual(await sorted(memory));
        expect(await readValues(store, filter, 'host')).toEqual(await readValues(memory, filter, 'host'));
      }),
      { numRuns: 40, endOnFailure: true },
    );
    await store.close();
  },
);

it('keeps what was flushed when the process ends without a word', async () => {
  const directory = makeDirectory();
  const store = await open(directory);
  store.append(profileFromText('sh:1;main@n 5', { endMs: nowMs, spanMs: 1000 }));
  await store.flush();
  const copy = makeDirectory();
  cpSync(directory, copy, { recursive: true });
  const again = await open(copy);
  expect(again.stats()).toMatchObject({ samples: 5, oldestMs: expect.any(Number) });
  await again.close();
  await store.close();
});

it('knows after a restart which requests of the last day it has, and only where it has their samples', async () => {
  const directory = makeDirectory();
  const store = await open(directory);
  store.noteRequest('yesterday');
  await store.close();
  nowMs += 24 * HOUR;
  const second = await open(directory);
  expect(second.recentRequests()).toEqual(['yesterday']);
  for (const id of ['a', 'b']) second.noteRequest(id);
  await second.flush();
  second.append(profileFromText('sh:1;main@n 5', { endMs: nowMs, spanMs: 1000 }));
  second.noteRequest('not written');
  const crashed = makeDirectory();
  cpSync(directory, crashed, { recursive: true });
  const third = await open(crashed);
  expect(third.recentRequests()).toEqual(['yesterday', 'a', 'b']);
  expect(third.stats().samples).toBe(0);
  await third.close();
  await second.close();
  nowMs += 1;
  const aged = await open(directory);
  await aged.close();
  const fourth = await open(directory);
  expect(fourth.recentRequests()).toEqual(['a', 'b', 'not written']);
  await fourth.close();
});

it('writes a request that is taken in parts at once, however often it is asked to write meanwhile', async () => {
  const directory = makeDirectory();
  const store = await open(directory);
  const release = store.hold();
  store.append(profileFromText('sh:1;main@n 5', { endMs: nowMs, spanMs: 1000 }));
  let isWritten = false;
  const flushed = store.flush().then(() => {
    isWritten = true;
  });
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(isWritten).toBe(false);
  store.append(profileFromText('sh:2;main@n 6', { endMs: nowMs, spanMs: 1000 }));
  store.noteRequest('a');
  release();
  await flushed;
  const crashed = makeDirectory();
  cpSync(directory, crashed, { recursive: true });
  const other = await open(crashed);
  expect(other.recentRequests()).toEqual(['a']);
  expect(other.stats().samples).toBe(11);
  await other.close();
  await store.close();
});

it('drops whole parts for age, and for bytes the oldest first, and counts them', async () => {
  const directory = makeDirectory();
  const store = await open(directory);
  for (let hour = 0; hour < 4; hour++) {
    nowMs = START_MS + hour * HOUR;
    store.append(profileFromText(`p:1;f${hour}@n 10`, { endMs: nowMs, spanMs: 1 }));
  }
  await store.close();
  nowMs += HOUR;
  const aged = await open(directory, { maxAgeMs: 3.5 * HOUR });
  expect(aged.stats()).toMatchObject({ samples: 30, droppedForAge: 10, droppedForMemory: 0 });
  await aged.close();
  const small = await open(directory, { maxBytes: 1 });
  expect(small.stats()).toMatchObject({ samples: 0, droppedForMemory: 30, oldestMs: undefined });
  await small.close();
});

it('counts what is in the write-ahead log', async () => {
  const store = await open(makeDirectory());
  const before = store.stats().bytes;
  const text = Array.from({ length: 2000 }, (_, i) => `p:${i};f${i}@n 1`).join('\n');
  store.append(profileFromText(text, { endMs: nowMs, spanMs: 1 }));
  await store.commit();
  nowMs += HOUR / 2;
  store.append(profileFromText('p:1;a@n 1', { endMs: nowMs, spanMs: 1 }));
  await store.commit();
  await vi.waitFor(() => expect(store.stats().bytes).toBeGreaterThan(before + 50_000));
  await store.close();
});

it('says that a part was dropped to who still reads it', async () => {
  const store = await open(makeDirectory(), { maxAgeMs: HOUR });
  store.append(profileFromText('p:1;old@n 10', { endMs: nowMs, spanMs: 1 }));
  const range = { fromMs: 0, toMs: START_MS + HOUR };
  const [part] = await store.parts(range);
  nowMs += 2 * HOUR;
  await store.flush();
  expect(await store.parts(range)).toEqual([]);
  const everything = {
    series: undefined,
    groups: undefined,
    nodes: undefined,
    cpus: undefined,
    links: undefined,
  };
  await expect(
    part!.rows({ ...range, ...everything, by: ['node'], stepMs: 1, resolutionMs: 1 }),
  ).rejects.toThrow(PartDropped);
  await store.close();
});

it('keeps events that arrive while the old ones of their hour are dropped', async () => {
  nowMs = START_MS + HOUR - 1;
  const store = await open(makeDirectory(), { maxAgeMs: HOUR });
  store.append(profileFromText('p:1;old@n 10', { endMs: START_MS + 1000, spanMs: 1 }));
  await store.flush();
  nowMs = START_MS + 1.5 * HOUR;
  const dropped = store.flush();
  while (store.stats().samples > 0) await setImmediate();
  store.append(profileFromText('p:1;new@n 7', { endMs: START_MS + HOUR - 1, spanMs: 1 }));
  await dropped;
  await store.flush();
  expect(store.stats()).toMatchObject({ samples: 7, droppedForAge: 10 });
  await store.close();
});

it('refuses a file of a newer version with a sentence', async () => {
  const directory = makeDirectory();
  await (await open(directory)).close();
  await alter(directory, 'UPDATE meta SET schema_version = 99');
  await expect(open(directory)).rejects.toThrow(
    'schema version 99, this program knows 11: use the newer everyframe',
  );
});

it('takes what a file of the version without types holds for CPU samples', async () => {
  const directory = makeDirectory();
  const old = await open(directory);
  old.append(profileFromText('sh:1;main@n 5', { endMs: nowMs, spanMs: 1000 }));
  await old.close();
  await alter(directory, 'DROP TABLE types; DROP TABLE linked_parts; UPDATE meta SET schema_version = 9');
  const store = await open(directory);
  expect(await store.types({ fromMs: 0, toMs: nowMs + 1 })).toEqual([CPU_TYPE]);
  store.append(profileFromText('sh:1;main@n 4', { endMs: nowMs, spanMs: 1000 }));
  const sampleType = { type: 'off_cpu', unit: 'nanoseconds' };
  store.append(typedProfile('sh:1;wait@k 7000000000', { sampleType, endMs: nowMs }));
  await store.close();
  const again = await open(directory);
  const range = { fromMs: START_MS - HOUR, toMs: START_MS + HOUR, where: [] };
  expect((await readWindow(again, range, 1)).samples).toBe(9);
  expect((await readWindow(again, { ...range, type: 'off_cpu/nanoseconds' }, 1)).samples).toBe(7e9);
  expect(again.stats().samples).toBe(10);
  await again.close();
});

it('brings a file of version 1 up to date, with what it holds', async () => {
  const directory = makeDirectory();
  const old = await open(directory);
  old.append(profileFromText('sh:1;main@n 5', { endMs: nowMs, spanMs: 1000 }));
  await old.close();
  await alter(
    directory,
    `CREATE TABLE old_frames AS SELECT frames_1.id, name, file, mapping, kind FROM frames_1 JOIN places_1 ON place = places_1.id;
    CREATE TABLE old_series AS SELECT groups_1.* EXCLUDE (id, attributes), series_1.* EXCLUDE grp FROM series_1 JOIN groups_1 ON grp = groups_1.id;
    DROP TABLE frames_1; DROP TABLE places_1; DROP TABLE series_1; DROP TABLE groups_1; DROP TABLE sums_1; DROP TABLE requests;
    ALTER TABLE old_frames RENAME TO frames_1; ALTER TABLE old_series RENAME TO series_1; ALTER TABLE parts DROP has_sums; DROP TABLE linked_parts; DROP TABLE types;
    DROP TABLE functions; DROP TABLE trees; UPDATE meta SET schema_version = 1`,
  );
  const store = await open(directory);
  store.append(profileFromText('sh:1;main@p:/a.py:3 4', { endMs: nowMs, spanMs: 1000 }));
  store.noteRequest('a');
  await store.commit();
  await store.close();
  const again = await open(directory);
  expect(again.stats().samples).toBe(9);
  const range = { fromMs: START_MS - HOUR, toMs: START_MS + HOUR, where: [] };
  expect((await readTimeline(again, range, 1, undefined)).get('')).toEqual(Float64Array.of(9));
  expect(again.recentRequests()).toEqual(['a']);
  expect(countLines((await readWindow(again, range, 1)).parts, '/a.py').lines).toEqual([
    { line: 3, function: 'main', self: 4, total: 4 },
  ]);
  await again.close();
});

it('migrates wholly or not at all', async () => {
  const directory = makeDirectory();
  const file = join(directory, 'x.duckdb');
  const steps = [
    'CREATE TABLE a(x BIGINT)',
    'ALTER TABLE a ADD COLUMN y BIGINT',
    'ALTER TABLE missing DROP z',
  ];
  const read = (sql: string) => withFile(file, async (c) => (await c.runAndReadAll(sql)).getColumns()[0]);
  await withFile(file, (connection) => migrate(connection, steps.slice(0, 1)));
  await expect(withFile(file, (connection) => migrate(connection, steps))).rejects.toThrow(/missing/);
  const columns = "SELECT column_name FROM duckdb_columns() WHERE table_name = 'a'";
  expect([await read(columns), await read('SELECT schema_version FROM meta')]).toEqual([['x'], [1]]);
  await withFile(file, (connection) => migrate(connection, steps.slice(0, 2)));
  expect([await read(columns), await read('SELECT schema_version FROM meta')]).toEqual([['x', 'y'], [2]]);
});

async function withFile<T>(file: string, run: (connection: DuckDBConnection) => Promise<T>): Promise<T> {
  const instance = await DuckDBInstance.create(file);
  const connection = await instance.connect();
  try {
    return await run(connection);
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

const alter = (directory: string, sql: string): Promise<unknown> =>
  withFile(join(directory, 'everyframe.duckdb'), (connection) => connection.run(sql));

it('writes a profile whose samples are of more hours than fit into one transaction', async () => {
  const store = await open(makeDirectory());
  const profile = profileFromText('sh:1;main@n 1', { endMs: nowMs, spanMs: 1 });
  const [sample] = profile.samples;
  sample!.timestamps = Array.from(
    { length: 47 },
    (_, hours) => BigInt(nowMs - 1 - hours * HOUR) * 1_000_000n,
  );
  sample!.value = sample!.timestamps.length;
  expect(store.append(profile).stored).toBe(47);
  store.noteRequest('a');
  await store.commit();
  const range = { fromMs: START_MS - 48 * HOUR, toMs: START_MS + HOUR, where: [] };
  expect((await readTimeline(store, range, 1, undefined)).get('')).toEqual(Float64Array.of(47));
  await store.close();
});
