/** Commander's command, in whose errors a person reads what they typed, and what may be meant by it. */
import { Command, type ErrorOptions } from 'commander';

const EXCESS = 'commander.excessArguments';

export class ProgramCommand extends Command {
  override createCommand(name?: string): Command {
    return new ProgramCommand(name);
  }

  override error(message: string, options?: ErrorOptions): never {
    return super.error(options?.code === EXCESS ? `error: ${tellExcess(this)}` : message, options);
  }
}

/** Words that stand where there may be none. */
function tellExcess(command: Command): string {
  const words = command.args.slice(command.registeredArguments.length);
  return `${command.name()} has no use for "${words.join(' ')}"${meantBy(command, words[0] ?? '')}`;
}

function meantBy({ options }: Command, word: string): string {
  const has = (flag: string): boolean => options.some(({ short, long }) => short === flag || long === flag);
  if (/^\d+$/.test(word) && has('--pid')) return `: is -p ${word} meant?`;
  const [, name = '', value = ''] = /^([a-z][a-z-]*)(?:=(.*))?$/s.exec(word) ?? [];
  if (name !== '' && has(`--${name}`)) return `: is --${name}${value && ` ${value}`} meant?`;
  if (name !== '' && value === '' && has('--pid')) return `: is -p $(pgrep -d, ${word}) meant?`;
  return '';
}
