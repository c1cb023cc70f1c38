import { type Command, Option } from 'commander';
import { IGNORED_FLAGS } from '../../agent/settings/ignored-flags.ts';
import { AGENT_SETTINGS } from '../../agent/settings/options.ts';
import { settingName } from '../../common/base/setting.ts';
import { tellIgnored } from './drop-in.ts';
import { addSetting, collect } from './settings.ts';

/** Adds the settings of the agent, except those that the command has no use for. */
export function addAgentFlags(command: Command, except: readonly string[] = []): Command {
  for (const setting of AGENT_SETTINGS) {
    if (except.includes(setting.flag)) continue;
    addSetting(command, setting);
  }
  for (const flag of Object.keys(IGNORED_FLAGS)) {
    const form = flag.length === 1 ? `-${flag} <value>` : `--${flag} [value]`;
    const option = new Option(form).hideHelp();
    command.addOption(flag === PROBE_LINK ? option.argParser(collect) : option);
  }
  return command;
}

/** Theirs for probes in user code, which are sampled beside CPU time: `uprobe:PATH:SYMBOL`. */
const PROBE_LINK = 'probe-link';
const USER_PROBE = /^u(?:ret)?probe:/i;

function eventsOf(probes: readonly string[]): string[] {
  const events = probes
    .filter((probe) => USER_PROBE.test(probe))
    .map((probe) => probe.replace(USER_PROBE, (kind) => kind.toLowerCase()));
  return events.length > 0 ? ['cpu-clock', ...events] : [];
}

/** --no-X, which commander reads as X: false. */
const NEGATED: Readonly<Record<string, string>> = { sourceMaps: 'noSourceMaps', labels: 'noLabels' };

/** Splits what commander parsed into the agent's own settings and the flags that mean nothing here. */
export function splitAgentFlags(flags: Record<string, unknown>): {
  settings: Record<string, unknown>;
  ignored: string[];
  /** Of --config. */
  config: string | undefined;
} {
  const camelIgnored = new Map(Object.keys(IGNORED_FLAGS).map((flag) => [settingName(flag), flag]));
  const settings: Record<string, unknown> = {};
  const ignored: string[] = [];
  const { config, [settingName(PROBE_LINK)]: probeLink, ...others } = flags;
  const probes = (probeLink ?? []) as string[];
  if (!probes.every((probe) => USER_PROBE.test(probe))) ignored.push(PROBE_LINK);
  for (const [name, value] of Object.entries(others)) {
    if (name === 'kernelVersionCheck') {
      if (value === false) ignored.push('no-kernel-version-check');
      continue;
    }
    if (NEGATED[name] !== undefined) {
      if (value === false) settings[NEGATED[name]] = true;
      continue;
    }
    const flag = camelIgnored.get(name);
    if (flag === undefined) settings[name] = value;
    else ignored.push(flag);
  }
  const events = eventsOf(probes);
  if (events.length > 0) settings['event'] = [...((settings['event'] as string[]) ?? []), ...events];
  return { settings, ignored: tellIgnored(ignored, process.env), config: config as string | undefined };
}
