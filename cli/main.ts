#!/usr/bin/env node
import { allCommands } from './commands/all-commands.ts';
import { noCommand } from './program/no-command.ts';
import { argumentsOf, newProgram, runProgram } from './program/program.ts';

const program = newProgram();
const [command = '', part] = argumentsOf(process.argv);
const commands = allCommands(program, part);
// without a command it is `run`, or a person wants to see them all
const wanted = Object.hasOwn(commands, command) ? [command] : Object.keys(commands);
const isNone = !Object.hasOwn(commands, command) && !/^(-.*|help)?$/s.test(command);
await runProgram(program, async () => {
  if (isNone) throw noCommand(command, Object.keys(commands));
  for (const name of wanted) await commands[name]!();
});
