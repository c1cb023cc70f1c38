import type { Command } from 'commander';
import type { Logger } from 'pino';
import { destinationOptions } from '../../agent/reporter/options.ts';
import { type AgentOptions, parseAgentOptions } from '../../agent/settings/options.ts';
import { addConfigFlag, findConfig } from '../config/find-config.ts';
import { addAgentFlags, splitAgentFlags } from '../program/agent-flags.ts';
import { addExamples } from '../program/examples.ts';
import { makeLogger } from '../program/logger.ts';
import { agentMetrics } from '../service/agent-metrics.ts';
import { onReload } from '../service/hangup.ts';
import { startHealthServer } from '../service/health-server.ts';
import { reloadAgent } from '../service/reload-agent.ts';
import { Systemd } from '../service/systemd.ts';
import { type RunningAgent, startAgent, type Transport } from '../start/run-agent.ts';
import { untilSignal } from '../start/start-agent.ts';

const RECEIVER_NEEDED =
  '--collection-agent HOST:PORT is needed: where to push profiles ("everyframe run" brings a collector of its own)';

export function registerAgent(program: Command): void {
  const command = program
    .command('agent')
    .description('sample this machine and push profiles over OTLP gRPC')
    .action(runAgent);
  addAgentFlags(command);
  addConfigFlag(command);
  addExamples(command, [
    ['everyframe agent --collection-agent collector.example:4317', 'to an OpenTelemetry Collector, with TLS'],
    [
      'everyframe agent --collection-agent 127.0.0.1:11000 --disable-tls',
      'to everyframe collector on this machine',
    ],
  ]);
}

async function runAgent(flags: Record<string, unknown>): Promise<void> {
  const { settings, ignored, config } = splitAgentFlags(flags);
  const read = async () => {
    const file = await findConfig(config, process.env);
    const options = parseAgentOptions(settings, { env: process.env, ...(file && { file: file.agent }) });
    if (!options.collectionAgent[0]) throw new Error(RECEIVER_NEEDED);
    return { options, transport: destinationOptions(options), notes: file?.notes ?? [] };
  };
  const { options, transport, notes } = await read();
  const log = makeLogger('agent', options.verbose);
  for (const text of [...ignored, ...notes]) log.warn(text);
  await serve(options, read, () => startAgent({ options, transport }, log), log);
}

/** Samples until it is told to stop, and tells those who watch services. */
async function serve(
  options: AgentOptions,
  read: () => Promise<{ options: AgentOptions; transport: Transport; notes: readonly string[] }>,
  start: () => Promise<RunningAgent>,
  log: Logger,
): Promise<void> {
  const systemd = new Systemd(process.env);
  let agent: RunningAgent | undefined;
  const health = options.metricsAddress
    ? await startHealthServer(options.metricsAddress, {
        problem: () => (agent ? undefined : 'not sampling yet'),
        metrics: () => agentMetrics(agent?.counters() ?? {}),
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
  health?.close();
  systemd.close();
}

const describe = ({ samplesPerSecond, collectionAgent }: AgentOptions): string =>
  `sampling ${samplesPerSecond} times a second on each CPU, pushing to ${collectionAgent.join(' and ')}`;
