import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { printable } from '../common/base/printable.ts';
import { AGENT_FLAG_NAMES, normaliseDashes } from './agent-flags.ts';
import { endOnFaults, ignoreLostErrors } from './faults.ts';

const PACKAGE = new URL('../../package.json', import.meta.url);

export const newProgram = (): Command =>
  new Command('everyframe')
    .description(
      'Every frame of every process on this machine, as a flame graph and as OpenTelemetry profiles.',
    )
    .version(JSON.parse(readFileSync(PACKAGE, 'utf8')).version)
    .enablePositionalOptions()
    .showHelpAfterError('(--help lists the flags)');

export const newShow = (program: Command): Command =>
  program.command('show').description("print what the product makes of a machine's parts");

/** Runs the command that the process was started with, of those that `register` knows. */
export async function runProgram(program: Command, register: () => Promise<void>): Promise<void> {
  // `everyframe show … | head` ends when head has seen enough
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0);
    console.error(`everyframe: standard output can't be written: ${error.message}`);
    process.exit(1);
  });
  const tell = (text: string): void =>
    console.error(`everyframe: ${text.split('\n').map(printable).join('\n')}`);
  ignoreLostErrors();
  endOnFaults(tell);
  try {
    await register();
    await program.parseAsync(normaliseDashes(process.argv.slice(2), AGENT_FLAG_NAMES), { from: 'user' });
  } catch (error) {
    // a message may quote what a stranger wrote, and have lines of its own
    tell((error as Error).message);
    // whatever was started before it failed does not keep the process alive
    process.exit(1);
  }
}
