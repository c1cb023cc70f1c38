import { fstatSync } from 'node:fs';
import { expect, it } from 'vitest';
import { isJournal, journalPriority, serviceName } from './service-line.ts';

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

it.each([
  ['agent --once', 'agent'],
  ['collector --data /x', 'collector'],
  ['run', 'everyframe'],
  ['', 'everyframe'],
  ['--no-such-flag', 'everyframe'],
  ['collector import x.pb.gz', undefined],
  ['record -d 1s', undefined],
])('"everyframe %s" is a service named %s, but on a terminal', (line, name) => {
  const argv = line.split(' ');
  expect(serviceName(argv, false)).toBe(name);
  expect(serviceName(argv, true)).toBeUndefined();
});
