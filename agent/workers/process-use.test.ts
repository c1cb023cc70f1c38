import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readUse } from './process-use.ts';

it('reads bytes, whatever the size of a page', () => {
  const proc = mkdtempSync(join(tmpdir(), 'everyframe-proc-'));
  mkdirSync(join(proc, '7'));
  // 64 KiB a page: 512 resident, 64 of them of files
  writeFileSync(join(proc, '7', 'statm'), '4096 512 64 10 0 300 0');
  const status = 'Name:\tnode\nVmRSS:\t   32768 kB\nRssAnon:\t   28672 kB\nRssFile:\t    4096 kB\n';
  writeFileSync(join(proc, '7', 'status'), status);
  expect(readUse(7, proc)).toEqual({ privateBytes: 28 << 20, residentBytes: 32 << 20 });
  expect(readUse(8, proc)).toBeUndefined();
  rmSync(proc, { recursive: true });
});

it('says of this process what Node says', () => {
  const { rss } = process.memoryUsage();
  const { privateBytes = 0, residentBytes = 0 } = readUse(process.pid) ?? {};
  expect(Math.abs(residentBytes - rss)).toBeLessThan(rss / 10);
  expect(privateBytes).toBeLessThan(residentBytes);
  expect(privateBytes).toBeGreaterThan(residentBytes / 10);
});
