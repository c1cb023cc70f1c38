import { closestNames } from '../../common/base/closest-names.ts';

/** What a person is told who typed a command that there is not. */
export function noCommand(typed: string, commands: readonly string[]): Error {
  // what other programs have as a command
  const [closest] = typed === 'version' ? ['--version'] : closestNames(typed, commands);
  const meant = closest === undefined ? '' : ` (is ${closest} meant?)`;
  return new Error(`"${typed}" is not a command${meant}: everyframe --help lists them`);
}
