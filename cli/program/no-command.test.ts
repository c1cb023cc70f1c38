import { expect, it } from 'vitest';
import { noCommand } from './no-command.ts';

const COMMANDS = ['run', 'agent', 'record', 'report', 'support-bundle'];

it.each([
  ['recrod', '"recrod" is not a command (is record meant?): everyframe --help lists them'],
  ['bundle', '"bundle" is not a command (is support-bundle meant?): everyframe --help lists them'],
  ['version', '"version" is not a command (is --version meant?): everyframe --help lists them'],
  ['1234', '"1234" is not a command: for one process give -p 1234, as in everyframe -p 1234'],
  [
    import.meta.filename,
    `"${import.meta.filename}" is a file and no command: everyframe report ${import.meta.filename} prints what is in it, ` +
      `everyframe view ${import.meta.filename} shows it`,
  ],
  ['xyzzy', '"xyzzy" is not a command: everyframe --help lists them'],
])('%s', (typed, message) => {
  expect(noCommand(typed, COMMANDS).message).toBe(message);
});
