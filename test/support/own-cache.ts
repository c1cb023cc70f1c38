/** Before all tests: names and tables that they keep are their own, not those of an earlier run, and go with them. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** What it returns runs after all tests. */
export function setup(): () => void {
  const directory = mkdtempSync(join(tmpdir(), 'everyframe-test-cache-'));
  process.env['CACHE_DIRECTORY'] = directory;
  return () => rmSync(directory, { recursive: true });
}
