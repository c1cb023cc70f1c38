import type { Command } from 'commander';
import { expect, it } from 'vitest';
import { registerAgent } from '../commands/agent.ts';
import { registerCollector } from '../commands/collector.ts';
import { registerConfig } from '../commands/config.ts';
import { registerConvert } from '../commands/convert.ts';
import { registerDiff } from '../commands/diff.ts';
import { registerDoctor } from '../commands/doctor.ts';
import { registerMcp } from '../commands/mcp.ts';
import { registerQuery } from '../commands/query.ts';
import { registerRecord } from '../commands/record.ts';
import { registerReport } from '../commands/report.ts';
import { registerRun } from '../commands/run.ts';
import { registerShowObject } from '../commands/show-object.ts';
import { registerShowPrograms } from '../commands/show-programs.ts';
import { registerShowStackDeltas } from '../commands/show-stack-deltas.ts';
import { registerShowSymbol } from '../commands/show-symbol.ts';
import { registerTop } from '../commands/top.ts';
import { registerView } from '../commands/view.ts';
import { newProgram, newShow } from './program.ts';

const program = newProgram();
const register = [
  ...[registerRun, registerAgent, registerCollector, registerRecord, registerReport, registerConvert],
  ...[registerDiff, registerView, registerTop, registerDoctor, registerQuery, registerMcp],
  ...[registerConfig],
];
for (const one of register) one(program);
const show = newShow(program);
for (const one of [registerShowObject, registerShowPrograms, registerShowStackDeltas, registerShowSymbol])
  one(show);

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
