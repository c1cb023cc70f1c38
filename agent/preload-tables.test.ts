import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { preloadTables } from './preload-tables.ts';
import { ForeignFiles } from './processes/foreign-files.ts';

const folder = mkdtempSync(join(tmpdir(), 'read-ahead-'));
afterAll(() => rmSync(folder, { recursive: true }));
const files = new ForeignFiles();
afterAll(() => files.close());
const existing = join(folder, 'existing');
writeFileSync(existing, 'x');

/** What was called, in order; reporting fails for the `refused`-th file. */
function parts(refused = -1) {
  const calls: string[] = [];
  let reported = 0;
  const tracer = {
    reportFile: (fd: number) => {
      if (reported++ === refused) throw new Error('cannot map a file');
      calls.push(fd > 2 ? 'report' : 'bad descriptor');
      return () => void calls.push('release');
    },
    drain: () => void calls.push('drain'),
  };
  const executables = { settled: async () => void calls.push('settled') };
  return { calls, tracer, executables };
}

it('keeps files mapped until their tables are there', async () => {
  const { calls, tracer, executables } = parts();
  await preloadTables([existing, existing], tracer, executables, files);
  expect(calls).toEqual(['report', 'report', 'drain', 'settled', 'release', 'release']);
});

it('goes on without what is gone, no file, or can not be mapped', async () => {
  const { calls, tracer, executables } = parts(0);
  await preloadTables([join(folder, 'gone'), folder, existing, existing], tracer, executables, files);
  expect(calls).toEqual(['report', 'drain', 'settled', 'release']);
});

it('waits for nothing where nothing is expected', async () => {
  const { calls, tracer, executables } = parts();
  await preloadTables([], tracer, executables, files);
  expect(calls).toEqual([]);
});

it('reads no more than 512 files', async () => {
  const { calls, tracer, executables } = parts();
  await preloadTables(new Array(1000).fill(existing), tracer, executables, files);
  expect(calls.filter((call) => call === 'report')).toHaveLength(512);
});
