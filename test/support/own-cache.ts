/** Before all tests: what they keep, names and tables and files, is their own, not that of an earlier run, and goes with them. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** What it returns runs after all tests. */
export function setup(): () => void {
  const directory = mkdtempSync(join(tmpdir(), 'everyframe-tests-'));
  chmodSync(directory, 0o711); // some tests run programs of other users
  const cache = join(directory, 'cache');
  mkdirSync(cache, { mode: 0o700 });
  process.env['CACHE_DIRECTORY'] = cache;
  process.env['EVERYFRAME_TEST_FILES'] = directory;
  return () => rmSync(directory, { recursive: true });
}
