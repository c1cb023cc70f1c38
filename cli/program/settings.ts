import { type Command, Option } from 'commander';
import type { Setting } from '../../common/base/setting.ts';

/** For options that can be given several times. */
export const collect = (value: string, previous: string[] | undefined): string[] => [
  ...(previous ?? []),
  value,
];

/** As `choices` of an option, of which a beginning that is no other's, or a plural, is enough: `--by func`. */
export function withChoices(option: Option, choices: readonly string[]): Option {
  const parse = option.choices(choices).parseArg!;
  return option.argParser((text, previous) => {
    const meant = choices.filter(
      (choice) => (text !== '' && choice.startsWith(text)) || text === `${choice}s` || text === `${choice}es`,
    );
    return parse(!choices.includes(text) && meant.length === 1 ? meant[0]! : text, previous);
  });
}

/** Adds a row of a table of settings. The default is told and not set, so that an environment may stand between. */
export function addSetting(command: Command, setting: Setting & { isHidden?: boolean }): void {
  const { flag, value, help, repeatable, isHidden } = setting;
  const long = `--${flag}${value === undefined ? '' : ` <${value}>`}`;
  const text = setting.default === undefined ? help : `${help} (default: ${setting.default})`;
  const option = new Option(flag === 'verbose' ? `-v, ${long}` : long, text);
  if (repeatable) option.argParser(collect);
  if (isHidden) option.hideHelp();
  command.addOption(option);
}
