/** A store on a disk that is full: nothing that it acknowledged is lost, and it goes on when there is room again. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { DuckDbStore } from '../collector/store/duckdb/duckdb-store.ts';
import { profileFromText } from './browser/synthetic-profile.ts';

const disk = mkdtempSync(join(tmpdir(), 'everyframe-full-'));
const ballast = join(disk, 'ballast');
const mounted =
  process.getuid?.() === 0 &&
  spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=32m', 'none', disk]).status === 0;
if (!mounted) console.log('skipped: a full disk needs root and mount(8)');
let store: DuckDbStore;
let problems = 0;

const open = (): Promise<DuckDbStore> =>
  DuckDbStore.open({
    directory: join(disk, 'data'),
    maxBytes: 2 ** 30,
    maxAgeMs: 3_600_000,
    now: Date.now,
    logger: { error: () => void problems++, info: () => {} },
  });
const append = (id: number): number => {
  const lines = Array.from({ length: 1000 }, (_, i) => `p${id}:1;main@n;f${id}_${i}_${'x'.repeat(200)}@n 10`);
  return store.append(profileFromText(lines.join('\n'), { endMs: Date.now(), spanMs: 1000 })).stored;
};
const freeBytes = (): number => {
  const { bavail, bsize } = statfsSync(disk);
  return bavail * bsize;
};

beforeAll(() => {
  mkdirSync(disk, { recursive: true });
});

afterAll(() => {
  if (mounted) execFileSync('umount', ['-l', disk]);
  rmSync(disk, { recursive: true });
});

describe.skipIf(!mounted)('a store on a full disk', () => {
  it.each([
    ['its log', 512],
    // more than the log may grow to before all that is in it is written to the file
    ['a checkpoint', 17_000],
  ])(
    'fails what it could not write, keeps what it acknowledged, and goes on, where there is no room for %s',
    async (_, roomKiB) => {
      problems = 0;
      store = await open();
      let acknowledged = append(0);
      await store.commit();
      writeFileSync(ballast, Buffer.alloc(freeBytes() - roomKiB * 1024));
      let waiting = 0;
      for (let id = 1; waiting === 0 && id < 500; id++) {
        const stored = append(id);
        try {
          await store.commit();
          acknowledged += stored;
        } catch (error) {
          expect((error as Error).message).toMatch(/No space left on device/);
          waiting = stored;
        }
      }
      expect(waiting).toBeGreaterThan(0);
      expect(problems).toBeGreaterThan(0);
      // nothing at all is left, and the database is opened anew on a disk like that
      writeFileSync(`${ballast}-rest`, Buffer.alloc(freeBytes()));
      waiting += append(500);
      await expect(store.commit()).rejects.toThrow('can be written');
      await setTimeout(2500);
      rmSync(`${ballast}-rest`);
      rmSync(ballast);
      await vi.waitFor(() => store.commit(), { timeout: 15_000 });
      await store.close();
      store = await open();
      expect(store.stats().samples).toBe(acknowledged + waiting);
      await store.close();
      rmSync(join(disk, 'data'), { recursive: true });
    },
  );
});
