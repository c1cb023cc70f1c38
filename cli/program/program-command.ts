/** Commander's command, in whose errors a person reads what they typed, and what may be meant by it. */
import { Command, type ErrorOptions } from 'commander';

/** By commander's code of the error; undefined: its own words. */
const TOLD: Readonly<Record<string, (command: Command) => string | undefined>> = {
  'commander.excessArguments': tellExcess,
  'commander.missingArgument': tellMissing,
  'commander.unknownCommand': tellUnknown,
};

export class ProgramCommand extends Command {
  override createCommand(name?: string): Command {
    return new ProgramCommand(name);
  }

  override error(message: string, options?: ErrorOptions): never {
    const told = TOLD[options?.code ?? '']?.(this);
    return super.error(told === undefined ? message : `error: ${told}`, options);
  }
}

/** Words that stand where there may be none. */
function tellExcess(command: Command): string {
  const words = command.args.slice(command.registeredArguments.length);
  return `${command.name()} has no use for "${words.join(' ')}"${meantBy(command, words[0] ?? '')}`;
}

/** With what it is. */
function tellMissing({ registeredArguments, args }: Command): string | undefined {
  const missing = registeredArguments[args.length];
  return missing?.description
    ? `missing required argument '${missing.name()}': ${missing.description}`
    : undefined;
}

/** What can't be the name of a command is for the first one that there is. */
function tellUnknown(command: Command): string | undefined {
  const [word = '', ...words] = command.args;
  const first = command.commands[0];
  if (first === undefined || !/[./=]/.test(word)) return undefined;
  const line = [pathOf(command), first.name(), word, ...words].join(' ');
  return `"${word}" is not a command of ${command.name()}: is ${line} meant?`;
}

const pathOf = (command: Command): string =>
  command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;

function meantBy({ options }: Command, word: string): string {
  const has = (flag: string): boolean => options.some(({ short, long }) => short === flag || long === flag);
  if (/^\d+$/.test(word) && has('--pid')) return `: is -p ${word} meant?`;
  const [, name = '', value = ''] = /^([a-z][a-z-]*)(?:=(.*))?$/s.exec(word) ?? [];
  if (name !== '' && has(`--${name}`)) return `: is --${name}${value && ` ${value}`} meant?`;
  if (name !== '' && value === '' && has('--pid')) return `: is -p $(pgrep -d, ${word}) meant?`;
  return '';
}
