import {
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { profileFromText } from '../../../test/browser/synthetic-profile.ts';
import { readValues } from '../../query/values.ts';
import { isDamage } from './damaged-file.ts';
import { prepareDirectory } from './data-directory.ts';
import { DuckDbStore } from './duckdb-store.ts';

const directories: string[] = [];
afterEach(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true });
});

const said: string[] = [];
const logger = { info: () => {}, error: (...what: unknown[]) => void said.push(String(what.at(-1))) };
const open = (directory: string): Promise<DuckDbStore> =>
  DuckDbStore.open({ directory, maxBytes: 2 ** 30, maxAgeMs: 3_600_000, now: Date.now, logger });
const append = (store: DuckDbStore, process: string): number => {
  const lines = Array.from({ length: 1200 }, (_, i) => `${process}:1;main@n;f${i}${'x'.repeat(90)}@n 1`);
  return store.append(profileFromText(lines.join('\n'), { endMs: Date.now(), spanMs: 1000 })).stored;
};

async function makeStore(): Promise<{ directory: string; path: string }> {
  const directory = mkdtempSync(join(tmpdir(), 'everyframe-damaged-'));
  directories.push(directory);
  return { directory, ...(await makeStoreAt(directory)) };
}

async function processesOf(store: DuckDbStore): Promise<string[]> {
  const all = { fromMs: 0, toMs: Number.MAX_SAFE_INTEGER, where: [] };
  return (await readValues(store, all, 'process')).map(({ value }) => String(value));
}

it.each([
  ['is not a database', (path: string) => writeFileSync(path, 'hello '.repeat(10_000))],
  ['is cut', (path: string) => truncateSync(path, 14_000)],
  ['has other bytes where its catalogue is', (path: string) => overwrite(path, 12_288, 200_000)],
  ['is zeros', (path: string) => writeFileSync(path, Buffer.alloc(300_000))],
])('sets a file aside that %s, says so, and takes samples', async (_, damage) => {
  const { directory, path } = await makeStore();
  damage(path);
  const store = await open(directory);
  expect(store.problem).toMatch(
    /everyframe\.duckdb was damaged \(.+\) and is now \*\.damaged-\w+ in .*begins anew/,
  );
  expect(readdirSync(directory).filter((name) => name.includes('.duckdb.damaged-'))).toHaveLength(1);
  append(store, 'new');
  await store.commit();
  expect(store.stats().samples).toBe(1200);
  await store.close();
});

/** Blocks of 256 KiB behind three headers of 4 KiB. */
function overwrite(path: string, from: number, length: number): void {
  const file = openSync(path, 'r+');
  writeSync(file, Buffer.alloc(length, 0xa5), 0, length, from);
}

it('goes on, with or without what was there, wherever a block is damaged', async () => {
  const { directory, path } = await makeStore();
  const { size } = statSync(path);
  const blocks = Math.ceil((size - 12_288) / 262_144);
  for (let block = 0; block <= blocks; block++) {
    rmSync(directory, { recursive: true });
    const { path } = await makeStoreAt(directory);
    if (block < blocks) overwrite(path, 12_288 + block * 262_144 + 5000, 64);
    else truncateSync(path, 12_288 + 1.5 * 262_144);
    const store = await open(directory);
    append(store, 'new');
    for (let tries = 0; tries < 5; tries++) {
      await store.commit().catch(() => {});
      if (store.problem === undefined || /begins anew|left out/.test(store.problem)) break;
      await new Promise((resolve) => setTimeout(resolve, 1000 * 2 ** tries));
    }
    await store.commit();
    const seen = await retried(() => processesOf(store));
    expect(seen).toContain('new');
    if (!seen.includes('old')) expect(store.problem, `block ${block}`).toMatch(/damaged/);
    await store.close();
  }
}, 120_000);

async function makeStoreAt(directory: string): Promise<{ path: string }> {
  const store = await open(directory);
  append(store, 'old');
  await store.close();
  return { path: join(directory, 'everyframe.duckdb') };
}

/** As the page's server does. */
async function retried<T>(run: () => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries++) {
    try {
      return await run();
    } catch (error) {
      if (tries === 5) throw error;
    }
  }
}

it.each([
  'IO Error: Could not set lock on file "/x/everyframe.duckdb": Conflicting lock is held in PID 7',
  'TransactionContext Error: Failed to commit: Could not write file "/x": No space left on device',
  'Out of Memory Error: failed to offload data block of size 32.0 KiB',
  'the store has schema version 99, this program knows 9',
  'IO Error: Cannot open file "/x": Permission denied',
])('takes no other failure for damage: %s', (message) => {
  expect(isDamage(new Error(message))).toBe(false);
});

it.each([
  ['/proc/x', 'no directory can be made there'],
  ['/proc/x/y/z', 'no directory can be made there'],
  ['/dev/null', 'a file is where a directory would have to be'],
  ['/dev/null/x', 'a file is where a directory would have to be'],
  [`/tmp/${'x'.repeat(300)}`, 'its name is too long'],
])('says why %s can not be a data directory', (path, why) => {
  expect(() => prepareDirectory(path)).toThrow(why);
});
