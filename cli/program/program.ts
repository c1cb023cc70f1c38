import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Command, Help, type Option } from 'commander';
import { packageRoot } from '../../agent/base/package-root.ts';
import { BadSetting } from '../../common/base/bad-setting.ts';
import { excerpt } from '../../common/base/printable.ts';
import { inWords } from '../../common/base/system-error.ts';
import { AGENT_FLAG_NAMES, asDropIn, normaliseDashes } from './drop-in.ts';
import { addExamples } from './examples.ts';
import { endOnFaults, ignoreLostErrors } from './faults.ts';
import { ProgramCommand } from './program-command.ts';
import { fatalLine, serviceName } from './service-line.ts';

/** The one of package.json, where a release also says the commit that it was built from. */
export function productVersion(): string {
  const { version, commit } = JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8'));
  return commit === undefined ? version : `${version} (commit ${commit})`;
}

const COPYRIGHT = `Copyright the authors of everyframe. Licensed under the Apache License, version 2.0; what the kernel runs of it
under BSD or GPL-2.0. LICENSE and, in releases, LICENCES.txt have the terms of all parts.
`;

/** Defaults as they are typed, without quotes. */
function describeOption(this: Help, option: Option): string {
  if (typeof option.defaultValue === 'string' && option.defaultValueDescription === undefined)
    option.defaultValueDescription = option.defaultValue;
  return Help.prototype.optionDescription.call(this, option);
}

const HELP_HINT = '(--help lists the flags)';

export function newProgram(): Command {
  const program = new ProgramCommand('everyframe')
    .description(
      'Every frame of every process on this machine, as a flame graph and as OpenTelemetry profiles.',
    )
    .version(productVersion())
    .option('--copyright', 'output the copyright and where the licences are')
    .on('option:copyright', () => {
      process.stdout.write(COPYRIGHT);
      process.exit(0);
    })
    .enablePositionalOptions()
    .configureHelp({ optionDescription: describeOption })
    .showHelpAfterError(HELP_HINT);
  return addExamples(program, [
    ['sudo everyframe', 'profiles this machine and shows it on a page'],
    ['sudo everyframe record -o make.pb.gz --view -- make', 'profiles a command, then shows it'],
  ]);
}

export const newShow = (program: Command): Command =>
  addExamples(program.command('show').description("print what the product makes of a machine's parts"), [
    ['everyframe show symbol /usr/bin/node 0x9a1234', 'the functions at an address'],
    ['everyframe show stack-deltas libfoo.so', 'how its stacks are unwound'],
  ]);

/** EX_CONFIG of sysexits.h: the units do not start such a service again (RestartPreventExitStatus), as that mends no file. */
const BAD_CONFIG = 78;
const MAX_LINES = 100;
const MAX_LINE_CHARS = 2000;

/** A message may quote what a stranger wrote, and have lines of its own. */
function linesOf(text: string): string[] {
  const lines = text.split('\n');
  const shown = lines.slice(0, MAX_LINES).map((line) => excerpt(line, MAX_LINE_CHARS));
  return lines.length > MAX_LINES ? [...shown, `and ${lines.length - MAX_LINES} more lines`] : shown;
}

/** What a collector refuses at its start may have a wrong setting as its cause. */
const isBadSetting = (error: unknown): boolean =>
  error instanceof BadSetting || (error as Error).cause instanceof BadSetting;

/** Flags that are wrong are told, and end a service, as all other settings are and do. */
function refuseFlags(program: Command, tell: (text: string) => void, exitCode: number): void {
  program
    .configureOutput({ outputError: () => {}, writeErr: () => {} })
    .exitOverride(({ exitCode: status, message }) => {
      if (status !== 0) tell(`${message.replace(/^error: /, '')} ${HELP_HINT}`);
      process.exit(status === 0 ? 0 : exitCode);
    });
}

/** Runs the command that the process was started with, of those that `register` knows. */
export async function runProgram(program: Command, register: () => Promise<void>): Promise<void> {
  // `everyframe show … | head` ends when head has seen enough
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0);
    console.error(`everyframe: standard output can't be written: ${inWords(error)}`);
    process.exit(1);
  });
  const service = serviceName(argumentsOf(process.argv));
  const tell = (text: string): void => {
    const whole = linesOf(text).join('\n');
    console.error(service === undefined ? `everyframe: ${whole}` : fatalLine(service, whole));
  };
  // the variable is taken out of the environment later
  const badSettingCode = process.env['NOTIFY_SOCKET'] ? BAD_CONFIG : 1;
  if (service !== undefined) refuseFlags(program, tell, badSettingCode);
  ignoreLostErrors();
  endOnFaults(tell);
  try {
    await register();
    await program.parseAsync(argumentsOf(process.argv), { from: 'user' });
  } catch (error) {
    tell((error as Error).message);
    // whatever was started before it failed does not keep the process alive
    process.exit(isBadSetting(error) ? badSettingCode : 1);
  }
}

/** What a person, or another profiler's unit, has typed. */
export const argumentsOf = (argv: readonly string[], env: NodeJS.ProcessEnv = process.env): string[] =>
  asDropIn(normaliseDashes(argv.slice(2), AGENT_FLAG_NAMES), env);
