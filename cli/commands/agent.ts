import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import type { Logger } from 'pino';
import { destinationOptions } from '../../agent/reporter/options.ts';
import { type AgentOptions, parseAgentOptions } from '../../agent/settings/options.ts';
import { BadSetting } from '../../common/base/bad-setting.ts';
import type { PrometheusMetric } from '../../common/base/prometheus.ts';
import { addConfigFlag, findConfig } from '../config/find-config.ts';
import { whatIsSampled } from '../output/what-is-sampled.ts';
import { addAgentFlags, splitAgentFlags } from '../program/agent-flags.ts';
import { addExamples } from '../program/examples.ts';
import { makeLogger } from '../program/logger.ts';
import { agentMetrics } from '../service/agent-metrics.ts';
import { onReload } from '../service/hangup.ts';
import { startHealthServer } from '../service/health-server.ts';
import { type ReadSettings, reloadAgent } from '../service/reload-agent.ts';
import { Systemd } from '../service/systemd.ts';
import { type RunningAgent, startAgent } from '../start/run-agent.ts';
import { untilSignal } from '../start/start-agent.ts';
import { startTelemetry } from '../telemetry/telemetry.ts';

const RECEIVER_NEEDED =
  '--collection-agent HOST:PORT is needed: where to push profiles ("everyframe run" brings a collector of its own)';

export function registerAgent(program: Command): void {
  const command = program
    .command('agent')
    .description('sample this machine and push profiles over OTLP gRPC')
    .action(runAgent);
  addAgentFlags(command);
  addConfigFlag(command);
  command
    .option(
      '--once',
      'sample for one --reporter-interval, push that, and end; exits with 1 if it does not arrive',
    )
    .option('--dry-run', 'push nothing: say what would be pushed');
  addExamples(command, [
    ['everyframe agent --collection-agent collector.example:4317', 'to an OpenTelemetry Collector, with TLS'],
    [
      'everyframe agent --collection-agent 127.0.0.1:11000 --disable-tls',
      'to everyframe collector on this machine',
    ],
  ]);
}

async function runAgent({ once, dryRun, ...flags }: Record<string, unknown>): Promise<void> {
  const { settings, ignored, config } = splitAgentFlags(flags);
  const read = async (): Promise<ReadSettings> => {
    const file = await findConfig(config, process.env);
    const options = parseAgentOptions(settings, { env: process.env, ...(file && { file: file.agent }) });
    const notes = file?.notes ?? [];
    // what is wrong with a receiver is told in a dry run too
    if (dryRun === true && !options.collectionAgent[0]) return { options, transport: 'dry run', notes };
    if (!options.collectionAgent[0]) throw new BadSetting(RECEIVER_NEEDED);
    const transport = destinationOptions(options);
    return { options, transport: dryRun === true ? 'dry run' : transport, notes };
  };
  const { options, transport, notes } = await read();
  const log = makeLogger('agent', options.verbose);
  for (const text of [...ignored, ...notes]) log.warn(text);
  const agent = (): Promise<RunningAgent> => startAgent({ options, transport }, log);
  if (once === true) await sampleOnce(await agent(), options, dryRun === true);
  else await serve(options, read, agent, log);
}

/** The exit code says whether all of it arrived. */
async function sampleOnce(agent: RunningAgent, options: AgentOptions, isDry: boolean): Promise<void> {
  await Promise.race([untilSignal(), sleep(options.reporterInterval)]);
  await agent.stop();
  const counters = agent.counters();
  const [pushed = 0, sent = 0] = ['samplesPushed', 'samplesSent'].map((name) => counters[`reporter.${name}`]);
  process.exitCode = pushed > 0 && (isDry || sent >= pushed) ? 0 : 1;
}

/** Samples until it is told to stop, and tells those who watch services. */
async function serve(
  options: AgentOptions,
  read: () => Promise<ReadSettings>,
  start: () => Promise<RunningAgent>,
  log: Logger,
): Promise<void> {
  const systemd = new Systemd(process.env);
  let agent: RunningAgent | undefined;
  const metrics = (): PrometheusMetric[] => agentMetrics(agent?.counters() ?? {});
  const telemetry = startTelemetry(options.telemetry, 'agent', metrics, log);
  const health = options.metricsAddress
    ? await startHealthServer(options.metricsAddress, {
        problem: () => (agent ? undefined : 'not sampling yet'),
        metrics,
      })
    : undefined;
  if (health) log.info(`/healthz, /readyz and /metrics are at http://${health.address}`);
  let current = options;
  const starting = start();
  const isService = onReload(async () => {
    const running = await starting;
    systemd.reloading();
    current = await reloadAgent(current, read, running, log);
    systemd.ready(describe(current));
  });
  agent = await starting;
  log.info(describe(options));
  const stopped = untilSignal({ onHangup: !isService });
  systemd.ready(describe(options));
  log.debug(`stopping: ${await stopped}`);
  systemd.stopping();
  await agent.stop();
  await telemetry?.stop();
  health?.close();
  systemd.close();
}

const describe = (options: AgentOptions): string =>
  `sampling ${whatIsSampled(options)}; pushing to ${options.collectionAgent.join(' and ') || 'nobody'}`;
