/** Which file the settings are in. */
import { existsSync } from 'node:fs';
import { type Command, Option } from 'commander';
import type { Environment } from '../../common/base/setting-layers.ts';
import type { ConfigFile } from './config-file.ts';

/** Read where no other is named, and where it is. */
export const DEFAULT_CONFIG = '/etc/everyframe/config.yaml';

const VARIABLES = ['EVERYFRAME_CONFIG', 'OTEL_PROFILING_AGENT_CONFIG'];

export const addConfigFlag = (command: Command, otherwise = DEFAULT_CONFIG): Command =>
  command.addOption(
    new Option(
      '--config <FILE>',
      `settings, YAML; flags and variables win over it${otherwise === '' ? '' : ` (default: ${otherwise}, if there is one)`}`,
    ),
  );

/** Undefined where none is named and there is no default. Throws BadSetting. The parser is loaded only for a file. */
export async function findConfig(
  flag: string | undefined,
  env: Environment,
  otherwise = DEFAULT_CONFIG,
): Promise<ConfigFile | undefined> {
  const named = flag ?? VARIABLES.map((name) => env[name]).find((text) => text);
  const path = named ?? (otherwise !== '' && existsSync(otherwise) ? otherwise : undefined);
  return path === undefined ? undefined : (await import('./config-file.ts')).readConfigFile(path, env);
}
