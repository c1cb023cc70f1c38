import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { directoryInWords, inWords } from './system-error.ts';

const directory = mkdtempSync(join(tmpdir(), 'everyframe-words-'));
afterAll(() => rmSync(directory, { recursive: true }));

function wordsOfReading(name: string): string {
  try {
    readFileSync(join(directory, name));
  } catch (error) {
    return inWords(error);
  }
  throw new Error('it was read');
}

it('says what the system says, without the call', () => {
  writeFileSync(join(directory, 'file'), '');
  symlinkSync('loop', join(directory, 'loop'));
  expect(wordsOfReading('none')).toBe('there is no such file or directory');
  expect(wordsOfReading('.')).toBe('it is a directory');
  expect(wordsOfReading('file/below')).toBe('a part of its path is a file, and no directory');
  expect(wordsOfReading('loop')).toBe('its links lead in a circle');
});

it("leaves other errors' words", () => {
  expect(inWords(new Error('it is a pipe'))).toBe('it is a pipe');
  expect(inWords(Object.assign(new Error('EFOO: odd'), { code: 'EFOO' }))).toBe('EFOO: odd');
});

it('says of a directory that can not be made what to do', () => {
  writeFileSync(join(directory, 'file'), '');
  let error: unknown;
  try {
    mkdirSync(join(directory, 'file', 'below'));
  } catch (thrown) {
    error = thrown;
  }
  expect(directoryInWords(error)).toBe(
    'a file is where a directory would have to be: name another directory (ENOTDIR)',
  );
  expect(directoryInWords(new Error('it is a pipe'))).toBe('it is a pipe');
});
