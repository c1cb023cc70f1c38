/** What a command takes, read from its definition: completions and manual pages are made of it. */
import type { Command } from 'commander';

export interface OptionShape {
  /** `-v`, or a second name such as `--limit`; undefined where there is none. */
  short: string | undefined;
  long: string | undefined;
  /** `HOST:PORT`; undefined: a switch. */
  value: string | undefined;
  /** Words that it takes, of `full|names|off`. */
  choices: readonly string[];
  help: string;
}

export interface CommandShape {
  /** `everyframe`, `collector`, `import`. */
  path: readonly string[];
  description: string;
  /** After its name and options: `[-- COMMAND…]`. */
  operands: readonly { name: string; help: string; isRequired: boolean; isRepeated: boolean }[];
  options: readonly OptionShape[];
  commands: readonly CommandShape[];
}

/** Without what its help hides. */
export function shapeOf(command: Command, above: readonly string[] = []): CommandShape {
  const path = [...above, command.name()];
  const help = command.createHelp();
  return {
    path,
    description: command.description(),
    operands: command.registeredArguments.map((each) => ({
      name: each.name(),
      help: each.description,
      isRequired: each.required,
      isRepeated: each.variadic,
    })),
    options: help.visibleOptions(command).map(({ short, long, flags, description }) => {
      const value = /[<[]([^\]>]+)[\]>]/.exec(flags)?.[1];
      const choices =
        value !== undefined && /^[a-z0-9/-]+(\|[a-z0-9/-]+)+$/.test(value) ? value.split('|') : [];
      return { short: short ?? undefined, long: long ?? undefined, value, choices, help: description };
    }),
    commands: help
      .visibleCommands(command)
      .filter((each) => each.name() !== 'help')
      .map((each) => shapeOf(each, path)),
  };
}

/** Itself, and all below it. */
export const allShapes = (shape: CommandShape): CommandShape[] => [
  shape,
  ...shape.commands.flatMap(allShapes),
];
