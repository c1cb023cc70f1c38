/** `everyframe config`: is a file right, and where does each setting come from. */
import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import { destinationOptions } from '../../agent/reporter/options.ts';
import { type AgentOptions, layerAgentSettings, parseAgentOptions } from '../../agent/settings/options.ts';
import { readAccess } from '../../collector/net/access.ts';
import { checkBeyondLoopback, readAddresses } from '../../collector/net/reach.ts';
import {
  type CollectorSettings,
  layerCollectorSettings,
  parseCollectorSettings,
} from '../../collector/settings/options.ts';
import { BadSetting } from '../../common/base/bad-setting.ts';
import { type Setting, settingName } from '../../common/base/setting.ts';
import type { LayeredSettings } from '../../common/base/setting-layers.ts';
import { type ConfigFile, FILE_SETTINGS, readConfigFile } from '../config/config-file.ts';
import { DEFAULT_CONFIG, findConfig } from '../config/find-config.ts';
import { addExamples } from '../program/examples.ts';

export function registerConfig(program: Command): void {
  const config = addExamples(program.command('config').description('look at a file of settings'), [
    ['everyframe config check /etc/everyframe/config.yaml', 'says what is wrong in it, and in which line'],
    ['everyframe config print', 'every setting, and where its value comes from'],
  ]);
  const check = config
    .command('check')
    .argument('[FILE]', `the file (default: ${DEFAULT_CONFIG})`)
    .description('say what is wrong in a file of settings; exits with 1 then')
    .action((path?: string) => {
      // a service without one has flags
      if (path === undefined && !existsSync(DEFAULT_CONFIG)) process.stdout.write(`no ${DEFAULT_CONFIG}\n`);
      else process.stdout.write(checkFile(path ?? DEFAULT_CONFIG, process.env));
    });
  addExamples(check, [
    ['everyframe config check', `the file of the services: ${DEFAULT_CONFIG}`],
    ['everyframe config check new.yaml && systemctl reload everyframe-agent', 'before it is used'],
  ]);
  const print = config
    .command('print')
    .argument('[FILE]', `the file (default: ${DEFAULT_CONFIG}, if there is one)`)
    .description(
      'print every setting, as a file has it, and where its value comes from; secrets are left out',
    )
    .option('--json', 'as JSON, for a script: each value with its origin')
    .action(async (path: string | undefined, { json }: { json?: true }) => {
      const file = await findConfig(path, process.env);
      const settings = json ? `${settingsJson(file, process.env)}\n` : printSettings(file, process.env);
      process.stdout.write(settings);
    });
  addExamples(print, [
    ['everyframe config print', 'what services on this machine would have'],
    ['everyframe config print my.yaml', 'with another file'],
  ]);
}

/** @throws BadSetting with all that is wrong, a line each */
export function checkFile(path: string, env: NodeJS.ProcessEnv): string {
  const wrong: string[] = [];
  const file = readConfigFile(path, env, wrong);
  const attempt = <T>(read: () => T): T | undefined => {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof BadSetting)) throw error;
      wrong.push(error.message);
      return undefined;
    }
  };
  const agent = attempt(() => parseAgentOptions({}, { file: file.agent }));
  if (agent) attempt(() => destinationOptions(toSomewhere(agent), env));
  const collector = attempt(() => parseCollectorSettings({}, { file: file.collector }));
  if (collector) attempt(() => checkReach(collector));
  if (wrong.length > 0) throw new BadSetting(wrong.join('\n'));
  return [...file.notes, `${path}: ok`].map((line) => `${line}\n`).join('');
}

/** The receiver may be told by a flag: what else is said of the connection is looked at anyway. */
const toSomewhere = (agent: AgentOptions): AgentOptions =>
  agent.collectionAgent[0] ? agent : { ...agent, collectionAgent: ['127.0.0.1:11000'] };

/** As a start does. */
function checkReach(settings: CollectorSettings): void {
  try {
    checkBeyondLoopback(readAddresses(settings), readAccess(settings), settings);
  } catch (error) {
    throw new BadSetting((error as Error).message);
  }
}

/** By section and name; what is not set is left out. */
export function settingsJson(file: ConfigFile | undefined, env: NodeJS.ProcessEnv): string {
  const of = (settings: readonly Setting[], { values, origins }: LayeredSettings) => {
    const set = settings.filter(({ flag }) => values[settingName(flag)] !== undefined);
    return Object.fromEntries(
      set.map(({ flag, isSecret }) => {
        const name = settingName(flag);
        return [flag, { value: isSecret ? '(secret)' : values[name], origin: origins[name] }];
      }),
    );
  };
  const { agent, collector } = layered(file, env);
  const sections = {
    agent: of(FILE_SETTINGS.agent, agent),
    collector: of(FILE_SETTINGS.collector, collector),
  };
  return JSON.stringify(sections, undefined, 2);
}

const layered = (file: ConfigFile | undefined, env: NodeJS.ProcessEnv) => ({
  agent: layerAgentSettings({}, { env, ...(file && { file: file.agent }) }),
  collector: layerCollectorSettings({}, { env, ...(file && { file: file.collector }) }),
});

/** As a file, with a comment that says where each value comes from. */
export function printSettings(file: ConfigFile | undefined, env: NodeJS.ProcessEnv): string {
  const { agent, collector } = layered(file, env);
  return [
    'agent:',
    ...linesOf(FILE_SETTINGS.agent, agent),
    'collector:',
    ...linesOf(FILE_SETTINGS.collector, collector),
    '',
  ].join('\n');
}

const COMMENT_COLUMN = 44;

function linesOf(settings: readonly Setting[], { values, origins }: LayeredSettings): string[] {
  return settings.map((setting) => {
    const name = settingName(setting.flag);
    const value = values[name];
    if (value === undefined) return `  # ${setting.flag}: not set`;
    const text = `  ${setting.flag}: ${setting.isSecret ? '"(secret)"' : textOf(value)}`;
    return `${text.padEnd(COMMENT_COLUMN)} # ${origins[name]}`;
  });
}

/** As YAML reads it: JSON where plain text would be something else. */
function textOf(value: unknown): string {
  if (Array.isArray(value)) return JSON.stringify(value);
  const text = String(value);
  return /^[\w./][\w./%+-]*(?::\d+)?$/.test(text) ? text : JSON.stringify(text);
}
