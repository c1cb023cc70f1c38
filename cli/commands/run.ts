/** `everyframe`: agent and collector as two processes, the collector without rights; whichever dies is started again. */
import { hostname, userInfo } from 'node:os';
import type { Command } from 'commander';
import type { Logger } from 'pino';
import { destinationOptions } from '../../agent/reporter/options.ts';
import { DESTINATION_FLAGS, parseAgentOptions } from '../../agent/settings/options.ts';
import { readToken } from '../../collector/net/access.ts';
import {
  layerCollectorSettings,
  parseCollectorSettings,
  RUN_SETTINGS,
} from '../../collector/settings/options.ts';
import type { Pid } from '../../common/base/brand.ts';
import { settingName } from '../../common/base/setting.ts';
import type { SettingLayer } from '../../common/base/setting-layers.ts';
import { addConfigFlag, findConfig } from '../config/find-config.ts';
import { whatIsSampled } from '../output/what-is-sampled.ts';
import { addAgentFlags, splitAgentFlags } from '../program/agent-flags.ts';
import { addExamples } from '../program/examples.ts';
import { makeLogger } from '../program/logger.ts';
import { addSetting } from '../program/settings.ts';
import {
  collectPid,
  filesOfChosen,
  PID_HELP,
  requireChosen,
  requireOneChoice,
  untilGone,
} from '../start/chosen-processes.ts';
import { startCollectorProcess } from '../start/collector-process.ts';
import { startAgent } from '../start/run-agent.ts';
import { untilSignal } from '../start/start-agent.ts';
import { START_AGAIN, Supervisor } from '../start/supervisor.ts';

/** The page's health view shows what the agent counts. */
const METRICS_INTERVAL_MS = 5000;

/** It has a collector of its own, which shows what the agent counts. */
const NOT_OF_RUN = [...DESTINATION_FLAGS, 'max-memory', 'self-metrics', 'metrics-address', 'telemetry'];

export function registerRun(program: Command): void {
  const command = program
    .command('run', { isDefault: true })
    .description('profile this machine and show it on a page (the default)')
    .action(run);
  for (const setting of RUN_SETTINGS) addSetting(command, setting);
  addAgentFlags(command, NOT_OF_RUN);
  addConfigFlag(command, '');
  command.option('-p, --pid <PID>', PID_HELP, collectPid);
  addExamples(command, [
    ['everyframe', 'profiles this machine, and prints the address of the page'],
    ['everyframe -p $(pgrep -d, nginx)', 'these processes alone, and what they start'],
    ['everyframe run --data /var/lib/everyframe --max-age 7d', 'keeps a week on disk'],
  ]);
}

/**
 * Takes the collector's settings out of those that were given, as arguments of its process, with those of the file. It has
 * the environment itself.
 *
 * @throws BadSetting before anything is started
 */
export function takeCollectorArguments(
  settings: Record<string, unknown>,
  places: { env?: NodeJS.ProcessEnv; file?: SettingLayer } = {},
): string[] {
  const flags: Record<string, unknown> = {};
  for (const { flag } of RUN_SETTINGS) {
    const name = settingName(flag);
    if (settings[name] !== undefined) flags[name] = settings[name];
    delete settings[name];
  }
  parseCollectorSettings(flags, places);
  const { values, origins } = layerCollectorSettings(flags, places);
  return RUN_SETTINGS.flatMap(({ flag, value, repeatable }) => {
    const name = settingName(flag);
    const setting = values[name];
    const isPassed = flags[name] !== undefined || origins[name] === places.file?.origin(name);
    if (setting === undefined || !isPassed) return [];
    if (value === undefined) return setting === true ? [`--${flag}`] : [];
    return (repeatable ? [setting].flat() : [setting]).flatMap((one) => [`--${flag}`, String(one)]);
  });
}

async function run({ pid, ...flags }: Record<string, unknown> & { pid?: Pid[] }): Promise<void> {
  const { settings, ignored, config } = splitAgentFlags(flags);
  const file = await findConfig(config, process.env, '');
  const beside = { env: process.env, ...(file && { file: file.collector }) };
  const tokenFile = layerCollectorSettings(settings, beside).values['tokenFile'];
  const collectorArguments = takeCollectorArguments(settings, beside);
  const options = parseAgentOptions(settings, {
    env: process.env,
    ...(file && { file: file.agent }),
    except: NOT_OF_RUN,
  });
  const { cgroup, excludeCgroup } = options;
  requireOneChoice({
    ...(pid && { pid }),
    ...(cgroup.length > 0 && { cgroup }),
    ...(excludeCgroup.length > 0 && { excludeCgroup }),
  });
  const log = makeLogger('everyframe', options.verbose);
  for (const text of [...ignored, ...(file?.notes ?? [])]) log.warn(text);
  const header = typeof tokenFile === 'string' ? [`authorization=Bearer ${readToken(tokenFile)}`] : [];
  // from here on, so that a Ctrl-C while it starts ends it in order
  const signalled = untilSignal();
  const supervisor = Supervisor.of(process.env);
  // an agent that starts again has a collector, whose samples stay though what was chosen is gone
  if (pid && !supervisor?.collector()) requireChosen({ pid });
  const starting = startCollectorProcess(collectorArguments, supervisor);
  // both take a second on a busy machine: the agent samples before the collector is ready
  const transport = starting.then(({ ready }) =>
    destinationOptions({ ...options, header, collectionAgent: [ready.grpc], disableTls: true }),
  );
  const agent = await startAgent(
    {
      options: { ...options, selfMetrics: true },
      transport,
      chosen: pid && { targets: pid, expectedFiles: filesOfChosen({ pid }) },
      withCollector: true,
      metricsIntervalMs: METRICS_INTERVAL_MS,
    },
    log,
  ).catch(async (error) => {
    const collector = await starting;
    if (!collector.isInherited) supervisor?.forgetCollector();
    await collector.stop();
    throw error;
  });
  const collector = await starting;
  if (collector.isInherited)
    log.info('the agent samples again; its collector, and all that it holds, was there meanwhile');
  else announce(collector.ready.page, whatIsSampled(options, pid), log);
  if (pid)
    void untilGone(agent).then(() => log.info('what was chosen has ended: the page stays until Ctrl-C'));
  const died = await Promise.race([signalled.then(() => undefined), collector.exited]);
  if (died !== undefined) {
    const next = supervisor ? 'both start again' : 'the agent ends too';
    log.error(
      `the collector ended by itself (${died}); its own lines above say why. What it held in memory is gone; ${next}`,
    );
    process.exitCode = supervisor ? START_AGAIN : 1;
  }
  await agent.stop(died === undefined);
  if (died === undefined) await collector.stop();
}

/** In words for whoever sits at the terminal; a service's log is JSON from its first line to its last. */
function announce(page: string, sources: string, log: Logger): void {
  if (!process.stdout.isTTY && !process.stderr.isTTY) {
    log.info({ page }, `sampling this machine: ${sources}; the page is at ${page}`);
    return;
  }
  const { port } = new URL(page);
  console.log(`everyframe samples this machine: ${sources}.`);
  console.log(`Open ${page}`);
  if (process.env['SSH_CONNECTION']) {
    console.log(
      `From your own machine: ssh -L ${port}:127.0.0.1:${port} ${userInfo().username}@${hostname()}`,
    );
  }
  console.log('Ctrl-C ends it.');
}
