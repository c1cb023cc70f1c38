import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { asOwner, explainLock } from './data-directory.ts';
import { DuckDbStore } from './duckdb-store.ts';

const isRoot = process.geteuid?.() === 0;
const owner = { name: 'nobody', uid: 65_534, gid: 65_534 };
const folder = mkdtempSync(join(tmpdir(), 'everyframe-owner-'));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

it.runIf(isRoot)('says which directory is closed to the owner, and leaves nothing behind', async () => {
  chmodSync(folder, 0o700);
  const opened = asOwner(join(folder, 'a', 'data'), owner, async () => 'open');
  await expect(opened).rejects.toThrow(`may not enter ${folder}`);
  expect(existsSync(join(folder, 'a'))).toBe(false);
  expect(statSync(folder).uid).toBe(0);
  expect(process.geteuid!()).toBe(0);
});

it('says that another process has the directory', () => {
  const text =
    'IO Error: Could not set lock on file "/x/everyframe.duckdb": Conflicting lock is held in node (PID 77) by root.';
  expect(explainLock(text)).toMatch(/^another process \(PID 77\).* uses this directory/);
  expect(explainLock('something else')).toBe('something else');
});

it.runIf(isRoot)("says that the file is another user's", async () => {
  const data = join(folder, 'data');
  mkdirSync(data, { recursive: true });
  chmodSync(folder, 0o755);
  chmodSync(data, 0o777);
  const options = { directory: data, maxBytes: 1e9, maxAgeMs: 1e9, now: Date.now, logger: console };
  await (await DuckDbStore.open(options)).close();
  for (const name of readdirSync(data)) chmodSync(join(data, name), 0o600);
  const opened = asOwner(data, owner, () => DuckDbStore.open(options));
  const { message } = await opened.then(
    () => expect.unreachable(),
    (error: Error) => error,
  );
  expect(explainLock(message)).toBe(
    `${data}/everyframe.duckdb is another user's: give it to the one whom the collector runs as (chown), or name another directory`,
  );
});
