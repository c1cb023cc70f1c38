import { type Command, Option } from 'commander';
import { AGENT_SETTINGS, IGNORED_FLAGS } from '../../agent/settings/options.ts';
import { settingName } from '../../common/base/setting.ts';
import { addSetting } from './settings.ts';

/** Adds the settings of the agent, except those that the command has no use for. */
export function addAgentFlags(command: Command, except: readonly string[] = []): Command {
  for (const setting of AGENT_SETTINGS) {
    if (except.includes(setting.flag)) continue;
    addSetting(command, setting);
  }
  for (const flag of Object.keys(IGNORED_FLAGS)) {
    command.addOption(new Option(flag.length === 1 ? `-${flag} <value>` : `--${flag} [value]`).hideHelp());
  }
  return command;
}

/** Splits what commander parsed into the agent's own settings and the flags that mean nothing here. */
export function splitAgentFlags(flags: Record<string, unknown>): {
  settings: Record<string, unknown>;
  ignored: string[];
} {
  const camelIgnored = new Map(Object.keys(IGNORED_FLAGS).map((flag) => [settingName(flag), flag]));
  const settings: Record<string, unknown> = {};
  const ignored: string[] = [];
  for (const [name, value] of Object.entries(flags)) {
    // commander reads --no-X as X: false
    if (name === 'kernelVersionCheck') {
      if (value === false)
        ignored.push(`--no-kernel-version-check has no effect: ${IGNORED_FLAGS['no-kernel-version-check']}`);
      continue;
    }
    if (name === 'sourceMaps') {
      if (value === false) settings['noSourceMaps'] = true;
      continue;
    }
    const flag = camelIgnored.get(name);
    if (flag === undefined) settings[name] = value;
    else ignored.push(`--${flag} has no effect: ${IGNORED_FLAGS[flag]}`);
  }
  return { settings, ignored };
}

/**
 * The OpenTelemetry profiler takes its flags with one dash or two, and `-flag=false` for switches; here two are
 * made of one. What follows `--` belongs to the profiled command and stays.
 */
export function normaliseDashes(argv: readonly string[], flags: ReadonlySet<string>): string[] {
  const end = argv.indexOf('--');
  const own = end < 0 ? argv : argv.slice(0, end);
  const rest = end < 0 ? [] : argv.slice(end);
  const normal = own.flatMap((arg) => {
    const match = /^--?([a-z][a-z-]+)(?:=(.*))?$/s.exec(arg);
    const name = match?.[1];
    if (name === undefined || !flags.has(name)) return [arg];
    const isSwitch = AGENT_SETTINGS.some((setting) => setting.flag === name && setting.value === undefined);
    if (isSwitch && match?.[2] !== undefined) return /^(1|t|true)$/i.test(match[2]) ? [`--${name}`] : [];
    return [arg.startsWith('--') ? arg : `-${arg}`];
  });
  return [...normal, ...rest];
}

export const AGENT_FLAG_NAMES: ReadonlySet<string> = new Set([
  ...AGENT_SETTINGS.map((setting) => setting.flag),
  ...Object.keys(IGNORED_FLAGS).filter((flag) => flag.length > 1),
]);
