/**
 * The commands that sample, and nothing else. What they need is bundled into one file (build/cli/sampling-bundle.cjs,
 * which bundle-start.ts runs): to find, load and compile three hundred modules takes two thirds of the start.
 */

import { samplingCommands } from './commands/sampling-commands.ts';
import { argumentsOf, newProgram, runProgram } from './program/program.ts';

const program = newProgram();
const commands = samplingCommands(program);
// bin/everyframe comes here with one of them, with flags, or with nothing
void runProgram(program, commands[argumentsOf(process.argv)[0] ?? ''] ?? commands['run']!);
