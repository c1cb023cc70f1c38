import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { placeOfCache } from './cache-place.ts';

const folder = mkdtempSync(join(tmpdir(), 'everyframe-cache-place-'));
const noFolder = join(folder, 'file');
writeFileSync(noFolder, '');
afterAll(() => rmSync(folder, { recursive: true }));

describe('where names and tables are kept', () => {
  it('is the directory that systemd made, for this user alone', () => {
    const place = placeOfCache(undefined, { CACHE_DIRECTORY: join(folder, 'unit') }, expect.fail);
    expect(place).toBe(join(folder, 'unit'));
    expect(statSync(join(folder, 'unit', 'tables')).mode & 0o777).toBe(0o700);
  });

  it('is the one that was asked for, or none', () => {
    expect(placeOfCache(join(folder, 'own'), {}, expect.fail)).toBe(join(folder, 'own'));
    expect(placeOfCache('off', { CACHE_DIRECTORY: folder }, expect.fail)).toBeUndefined();
  });

  it('costs nothing but a word where the default can not be had, and the start where another can not', () => {
    const told: string[] = [];
    const env = { CACHE_DIRECTORY: join(noFolder, 'x') };
    expect(placeOfCache(undefined, env, (text) => told.push(text))).toBeUndefined();
    expect(told).toEqual([
      expect.stringMatching(
        /^nothing is kept for later runs in \S+\/file\/x: a file is where a directory would have to be.*--symbol-cache/,
      ),
    ]);
    const place = join(noFolder, 'x');
    expect(() => placeOfCache(place, {}, expect.fail)).toThrow(
      `--symbol-cache ${place}: a file is where a directory would have to be: name another directory (ENOTDIR); off keeps nothing`,
    );
  });
});
