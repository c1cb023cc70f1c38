import { hostname } from 'node:os';
import { gzipSync } from 'node:zlib';
import type { Command } from 'commander';
import { layerAgentSettings } from '../../agent/settings/options.ts';
import { layerCollectorSettings } from '../../collector/settings/options.ts';
import { settingName } from '../../common/base/setting.ts';
import { type ConfigFile, FILE_SETTINGS } from '../config/config-file.ts';
import { addConfigFlag, findConfig } from '../config/find-config.ts';
import { checkOutputFile, type OutputFlags, STDOUT, writeOutput } from '../output/output-file.ts';
import { addExamples } from '../program/examples.ts';
import {
  type BundlePart,
  environmentNames,
  journalParts,
  kernelFacts,
  metricsPart,
  textOf,
  versions,
} from '../support/bundle-parts.ts';
import { redact } from '../support/redact.ts';
import { describeCommands, flagOf, runningCommands } from '../support/running-commands.ts';
import { tarOf } from '../support/tar.ts';
import { printSettings } from './config.ts';
import { formatJson, type Probe, runChecks } from './doctor.ts';

const OWNER_ONLY = 0o600;
const SERVICES = ['agent', 'collector'] as const;

interface BundleFlags {
  output?: string;
  config?: string;
  force?: boolean;
}

export function registerSupportBundle(program: Command, probes: readonly Probe[] = []): void {
  const command = program
    .command('support-bundle')
    .description(
      'gather what helps to find a fault, in an archive: versions, settings without secrets, what doctor says, counters, logs of the services, facts of the kernel',
    )
    .option('-o, --output <FILE>', 'where (default: everyframe-support-HOST-TIME.tar.gz)')
    .option('--force', 'overwrite the output if it exists')
    .action(async ({ output, config, force }: BundleFlags) => {
      const path = output ?? defaultName();
      checkPlace(path, { force });
      const archive = await makeBundle(config, process.env, probes);
      await writeOutput(path, archive, { force, mode: OWNER_ONLY });
      if (path === STDOUT) return;
      process.stdout.write(
        `${path}: ${Math.ceil(archive.length / 1024)} KiB. Look through it before you send it.\n`,
      );
    });
  addConfigFlag(command);
  addExamples(command, [
    ['sudo everyframe support-bundle', 'with the logs of the services, which only root may read'],
    ['everyframe support-bundle -o - | tar tz', 'what is in it'],
    ['kubectl exec POD -- everyframe support-bundle -o - >bundle.tar.gz', "of a pod's agent or collector"],
  ]);
}

function checkPlace(path: string, flags: OutputFlags): void {
  try {
    checkOutputFile(path, flags);
  } catch (error) {
    throw new Error(`${(error as Error).message}. -o FILE puts it elsewhere, -o - on standard output`);
  }
}

function defaultName(): string {
  const time = new Date().toISOString().replace(/[-:]|\.\d+Z/g, '');
  return `everyframe-support-${hostname().replace(/[^\w.-]/g, '_')}-${time}.tar.gz`;
}

/** A gzipped tar. Never fails for a part that can't be had. */
export async function makeBundle(
  config: string | undefined,
  env: NodeJS.ProcessEnv,
  probes: readonly Probe[],
  proc = '/proc',
): Promise<Buffer> {
  const running = runningCommands(proc);
  const found = await findConfig(config ?? flagOf(running, 'config'), env).catch((error: Error) => error);
  const file = found instanceof Error ? undefined : found;
  const settings = settingsOf(file, env);
  const parts: BundlePart[] = [
    { name: 'versions.txt', text: versions },
    {
      name: 'settings.yaml',
      text: () => (found instanceof Error ? `${found.message}\n` : printSettings(file, env)),
    },
    { name: 'commands.txt', text: () => describeCommands(running) },
    { name: 'environment-names.txt', text: () => environmentNames(env) },
    { name: 'doctor.jsonl', text: async () => formatJson(await runChecks(probes)) },
    { name: 'kernel.txt', text: kernelFacts },
    ...SERVICES.map((name) =>
      metricsPart(
        name,
        flagOf(
          running.filter(({ command }) => command === name),
          'metrics-address',
        ) ?? (settings[name]['metricsAddress'] as string | undefined),
      ),
    ),
    ...journalParts,
  ];
  const secrets = secretsOf(settings);
  const files = [];
  for (const part of parts)
    files.push({
      name: `everyframe-support/${part.name}`,
      content: Buffer.from(redact(await textOf(part), secrets)),
    });
  return gzipSync(tarOf(files, Math.floor(Date.now() / 1000)));
}

type Values = Record<'agent' | 'collector', Record<string, unknown>>;

/** None where the environment is wrong: the part with the settings says that. */
function settingsOf(file: ConfigFile | undefined, env: NodeJS.ProcessEnv): Values {
  try {
    return {
      agent: layerAgentSettings({}, { env, ...(file && { file: file.agent }) }).values,
      collector: layerCollectorSettings({}, { env, ...(file && { file: file.collector }) }).values,
    };
  } catch {
    return { agent: {}, collector: {} };
  }
}

/** Whole values, and of NAME=VALUE the latter too. */
const secretsOf = (settings: Values): string[] =>
  SERVICES.flatMap((section) =>
    FILE_SETTINGS[section]
      .filter(({ isSecret }) => isSecret)
      .flatMap(({ flag }) => [settings[section][settingName(flag)] ?? []].flat() as string[])
      .flatMap((text) => [text, text.slice(text.indexOf('=') + 1)]),
  );
