import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { CannotProfile } from '../base/cannot-profile.ts';
import { findProbedFile, withOpenFile } from './probed-file.ts';

test('libraries go by their name, and no script for the linker is taken for one', () => {
  for (const name of ['libc', 'c', 'libc.so.6']) expect(findProbedFile(name)).toMatch(/\/libc\.so\.6$/);
});

test('programs are found where the shell finds them, but for scripts that start them', () => {
  const folder = mkdtempSync(join(tmpdir(), 'everyframe-probes-'));
  writeFileSync(join(folder, 'sh'), '#!/bin/sh\nexec /bin/sh\n');
  chmodSync(join(folder, 'sh'), 0o755);
  expect(findProbedFile('sh', `${folder}:/bin`)).toBe('/bin/sh');
});

test('what is not there is told', () => {
  expect(() => findProbedFile('no-such-program')).toThrow(CannotProfile);
  expect(() => findProbedFile('./no/such')).toThrow('there is no file ./no/such');
});

test('a pipe that nobody writes to is not waited for', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'everyframe-probes-'));
  const fifo = join(folder, 'fifo');
  execFileSync('mkfifo', [fifo]);
  await expect(withOpenFile(fifo, async () => 1)).rejects.toThrow('is not a regular file');
  expect(() => findProbedFile('fifo', folder)).toThrow('there is no program or library fifo');
});
