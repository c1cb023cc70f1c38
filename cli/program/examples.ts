import type { Command } from 'commander';

/** A command line, and what it does. */
export type Example = readonly [line: string, meaning: string];

/** At the end of a command's --help. */
export const addExamples = (command: Command, examples: readonly Example[]): Command =>
  command.addHelpText(
    'after',
    `\nExamples:\n${examples.map(([line, meaning]) => `  ${line}\n      ${meaning}`).join('\n')}`,
  );

/** Those of the command at `path` (`everyframe`, `collector`, `import`), as its help shows them. */
export function examplesIn(program: Command, path: readonly string[]): string {
  const command = path
    .slice(1)
    .reduce((above, name) => above.commands.find((each) => each.name() === name) ?? above, program);
  let help = '';
  command.configureOutput({
    writeOut: (part) => {
      help += part;
    },
  });
  command.outputHelp();
  return help.split('\nExamples:\n')[1] ?? '';
}
