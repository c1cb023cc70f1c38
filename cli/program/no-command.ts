import { statSync } from 'node:fs';
import { closestNames } from '../../common/base/closest-names.ts';

/** What a person is told who typed a command that there is not. */
export function noCommand(typed: string, commands: readonly string[]): Error {
  if (/^\d+$/.test(typed))
    return new Error(
      `"${typed}" is not a command: for one process give -p ${typed}, as in everyframe -p ${typed}`,
    );
  // what other programs have as a command
  const [closest] = typed === 'version' ? ['--version'] : closestNames(typed, commands);
  if (closest === undefined && isFile(typed))
    return new Error(
      `"${typed}" is a file and no command: everyframe report ${typed} prints what is in it, everyframe view ${typed} shows it`,
    );
  const meant = closest === undefined ? '' : ` (is ${closest} meant?)`;
  return new Error(`"${typed}" is not a command${meant}: everyframe --help lists them`);
}

function isFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
