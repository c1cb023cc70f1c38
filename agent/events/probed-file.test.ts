import { chmodSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { CannotProfile } from '../base/cannot-profile.ts';
import { findProbedFile } from './probed-file.ts';

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
