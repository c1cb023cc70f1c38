import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openMapBytes } from './map-bytes.ts';

test('sums the maps among the open descriptors', () => {
  const self = mkdtempSync(join(tmpdir(), 'everyframe-proc-'));
  onTestFinished(() => rmSync(self, { recursive: true }));
  mkdirSync(join(self, 'fd'));
  mkdirSync(join(self, 'fdinfo'));
  const open = (fd: number, what: string, info: string) => {
    symlinkSync(what, join(self, 'fd', String(fd)));
    writeFileSync(join(self, 'fdinfo', String(fd)), info);
  };
  open(0, '/dev/null', 'pos:\t0\nflags:\t02\n');
  open(5, 'anon_inode:bpf-map', 'pos:\t0\nmap_type:\t2\nmax_entries:\t4\nmemlock:\t4096\nmap_id:\t7\n');
  open(6, 'anon_inode:bpf-prog', 'pos:\t0\nmemlock:\t8192\n');
  open(7, 'anon_inode:bpf-map', 'memlock:\t1000000\n');
  symlinkSync('anon_inode:bpf-map', join(self, 'fd', '8'));
  // the first one again, through another object
  open(9, 'anon_inode:bpf-map', 'memlock:\t4096\nmap_id:\t7\n');
  expect(openMapBytes(self)).toBe(1_004_096);
});
