import { mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { pruneCacheFiles, userCacheDirectory, writeCacheFile } from './cache-directory.ts';

let directory = '';
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'everyframe-test-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

test("a user's cache is where XDG_CACHE_HOME says, unless that is empty", () => {
  expect(userCacheDirectory({ XDG_CACHE_HOME: '/somewhere' })).toBe('/somewhere');
  for (const env of [{}, { XDG_CACHE_HOME: '' }])
    expect(userCacheDirectory(env)).toBe(join(homedir(), '.cache'));
});

test('of many small files those that were used longest ago leave, and none of another kind', () => {
  for (let i = 0; i < 6; i++) {
    const path = join(directory, `${i}.${i === 0 ? 'other' : 'table'}`);
    writeFileSync(path, 'x');
    utimesSync(path, 1000 + i, 1000 + i);
  }
  pruneCacheFiles(directory, '.table', { maxBytes: 1000, maxFiles: 2 });
  expect(readdirSync(directory).sort()).toEqual(['0.other', '4.table', '5.table']);
});

test('a file takes the place of its predecessor', () => {
  const path = join(directory, 'a');
  for (const text of ['first', 'second']) expect(writeCacheFile(path, text)).toBe(true);
  expect(readFileSync(path, 'utf8')).toBe('second');
  expect(readdirSync(directory)).toEqual(['a']);
});
