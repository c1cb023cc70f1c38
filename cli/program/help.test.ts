import type { Command } from 'commander';
import { expect, it } from 'vitest';
import { wholeProgram } from '../commands/all-commands.ts';

const program = await wholeProgram();

const withParts = (command: Command): Command[] => [command, ...command.commands.flatMap(withParts)];

function helpOf(command: Command): string {
  let text = '';
  command.configureOutput({
    writeOut: (part) => {
      text += part;
    },
  });
  command.outputHelp();
  return text;
}

it.each(withParts(program).map((command) => [command.name(), command] as const))(
  '%s --help has two examples that its parser takes, and defaults in one form',
  (_name, command) => {
    const help = helpOf(command);
    const [, examples = ''] = help.split('\nExamples:\n');
    const lines = examples.split('\n').filter((line) => /^ {2}\S/.test(line));
    expect(lines.length).toBeGreaterThanOrEqual(2);
    for (const line of lines) expect(line).toContain('everyframe');
    // not quoted in some and bare in others, and in parentheses everywhere
    expect(help).not.toMatch(/default: "/);
    expect(help).not.toMatch(/; default:/);
    // flags of the examples are flags of the command
    const known = withParts(program).flatMap((one) =>
      one.options.flatMap(({ short, long }) => [short, long]),
    );
    for (const line of lines)
      for (const flag of line.replace(/ -- .*/, '').match(/(?<=\s)--?[a-z][\w-]*/gi) ?? [])
        expect(known, line).toContain(flag);
  },
);
