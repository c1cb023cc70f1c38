/** A setting of one half of the product: a row of its table, of which flags, help and defaults are made. */
export interface Setting {
  flag: string;
  /** Metavariable of the help text; undefined: a switch. */
  value?: string;
  default?: string;
  repeatable?: boolean;
  /** Never printed. */
  isSecret?: boolean;
  help: string;
}

/** `maxUserFrames` of `max-user-frames`. */
export const settingName = (flag: string): string =>
  flag.replace(/-([a-z])/g, (_, c: string) => c.toUpperCase());

/** By name, of those that have one. */
export const defaultsOf = (settings: readonly Setting[]): Record<string, string> =>
  Object.fromEntries(
    settings.flatMap(({ flag, default: value }) => (value === undefined ? [] : [[settingName(flag), value]])),
  );

/** `--max-user-frames` of `maxUserFrames`. */
export const flagOf = (name: string): string => `--${name.replace(/[A-Z]/g, (c) => `-${c.toLowerCase()}`)}`;
