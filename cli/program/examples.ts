import type { Command } from 'commander';

/** A command line, and what it does. */
export type Example = readonly [line: string, meaning: string];

/** At the end of a command's --help. */
export const addExamples = (command: Command, examples: readonly Example[]): Command =>
  command.addHelpText(
    'after',
    `\nExamples:\n${examples.map(([line, meaning]) => `  ${line}\n      ${meaning}`).join('\n')}`,
  );
