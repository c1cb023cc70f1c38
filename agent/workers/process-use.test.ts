import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readPrivateBytes } from './process-use.ts';

it('reads bytes, whatever the size of a page', () => {
  const proc = mkdtempSync(join(tmpdir(), 'everyframe-proc-'));
  mkdirSync(join(proc, '7'));
  // 64 KiB a page
  writeFileSync(join(proc, '7', 'statm'), '4096 512 64 10 0 300 0');
  const status = 'Name:\tnode\nVmRSS:\t   32768 kB\nRssAnon:\t   28672 kB\nRssFile:\t    4096 kB\n';
  writeFileSync(join(proc, '7', 'status'), status);
  expect(readPrivateBytes(7, proc)).toBe(28 << 20);
  expect(readPrivateBytes(8, proc)).toBeUndefined();
  rmSync(proc, { recursive: true });
});

it('is a part of what Node says of this process', () => {
  const { rss } = process.memoryUsage();
  const bytes = readPrivateBytes(process.pid);
  expect(bytes).toBeLessThan(rss);
  expect(bytes).toBeGreaterThan(rss / 10);
});
