import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { readSettingFile } from './setting-file.ts';

const folder = mkdtempSync(join(tmpdir(), 'everyframe-setting-file-'));
const at = (name: string): string => join(folder, name);
afterAll(() => rmSync(folder, { recursive: true }));

const read = (path: string, maxBytes = 1000): string => readSettingFile(path, maxBytes).toString('utf8');

test('a file is read up to its cap, also by links as secrets of Kubernetes have them', () => {
  mkdirSync(at('..data'));
  writeFileSync(at('..data/token'), 'x'.repeat(1000));
  symlinkSync('..data/token', at('token'));
  expect(read(at('token'))).toBe('x'.repeat(1000));
  expect(() => read(at('token'), 999)).toThrow('it has more than the 999 bytes that are read');
  expect(read('/proc/self/comm')).not.toBe('');
  expect(read('/dev/null')).toBe('');
});

test('what may never end, or never begin, is refused', () => {
  execFileSync('mkfifo', [at('fifo')]);
  symlinkSync('/dev/zero', at('zero'));
  for (const name of ['fifo', 'zero']) expect(() => read(at(name))).toThrow('it is not a regular file');
  expect(() => read(folder)).toThrow('it is not a regular file');
});
