import type { Command } from 'commander';

/** A command line, and what it does. */
export type Example = readonly [line: string, meaning: string];

/** At the end of a command's --help. */
export function addExamples(command: Command, examples: readonly Example[]): Command {
  const lines = examples.map(([line, meaning]) => `  ${line}\n      ${meaning}`);
  return command.addHelpText('after', `\nExamples:\n${lines.join('\n')}`);
}
