import { fstatSync } from 'node:fs';
import { expect, it } from 'vitest';
import { isJournal, journalPriority } from './logger.ts';

it('shows a stream of journald by its inode', () => {
  const { dev, ino } = fstatSync(2);
  expect(isJournal(`${dev}:${ino}`)).toBe(true);
  expect(isJournal(`${dev}:${ino + 1}`)).toBe(false);
  expect(isJournal(undefined)).toBe(false);
});

it.each([
  ['error', '<3>'],
  ['warn', '<4>'],
  ['info', '<6>'],
  ['debug', '<7>'],
])('%s has the priority %s', (level, prefix) => {
  expect(journalPriority(`{"level":"${level}","msg":"\\"level\\":\\"x\\""}`)).toBe(prefix);
});
