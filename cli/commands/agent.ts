import type { Command } from 'commander';
import type { Logger } from 'pino';
import { Destinations } from '../../agent/reporter/destinations.ts';
import { destinationOptions } from '../../agent/reporter/options.ts';
import { resourceFromEnvironment } from '../../agent/reporter/resource-environment.ts';
import { SelfMetrics } from '../../agent/reporter/self-metrics.ts';
import { type AgentOptions, parseAgentOptions } from '../../agent/settings/options.ts';
import type { Profile } from '../../common/profile/model/profile.ts';
import type { SenderOptions } from '../../otlp-client/request-sender.ts';
import { addConfigFlag, findConfig } from '../config/find-config.ts';
import { addAgentFlags, splitAgentFlags } from '../program/agent-flags.ts';
import { addExamples } from '../program/examples.ts';
import { makeLogger } from '../program/logger.ts';
import { raisePriority } from '../start/priority.ts';
import { controllerOptions, startController, untilSignal } from '../start/start-agent.ts';

/** From the signal on: the last interval is named and has left by then. */
const STOP_DEADLINE_MS = 4500;
/** Also where naming took long, a receiver gets that long to take it. */
const MIN_FLUSH_MS = 1000;

export interface RunningAgent {
  /** Without a receiver what waits for it is dropped, and counted. */
  stop(hasReceiver?: boolean): Promise<void>;
}

/** The first one gets the agent's own metrics as well. */
type Transport = readonly [SenderOptions, ...SenderOptions[]];

export interface AgentSettings {
  options: AgentOptions;
  /** Where to push; sampling does not wait for it. */
  transport: Transport | Promise<Transport>;
  /** A collector shares its memory limit. */
  withCollector?: boolean;
  /** Of --self-metrics; by default a minute. */
  metricsIntervalMs?: number;
}

/** Samples and pushes until stopped. */
export async function startAgent(
  { options, transport, withCollector = false, metricsIntervalMs }: AgentSettings,
  log: Logger,
): Promise<RunningAgent> {
  const sending = Promise.resolve(transport).then((settings) => ({
    settings,
    reporter: new Destinations(settings, log),
  }));
  const resource = resourceFromEnvironment(process.env);
  for (const note of resource.notes) log.warn(note);
  // without a receiver nothing is pushed: it is told below why
  const push = (profile: Profile): Promise<void> =>
    sending.then(
      ({ reporter }) => reporter.push({ ...profile, host: { ...profile.host, ...resource.attributes } }),
      () => {},
    );
  raisePriority(log);
  const starting = Promise.resolve().then(() =>
    startController(controllerOptions(options, log, { withCollector }), { push }, log),
  );
  await Promise.allSettled([sending, starting]);
  const { settings, reporter } = await sending.catch(async (error) => {
    await starting.then((controller) => controller.stop());
    throw error;
  });
  const controller = await starting.catch((error) => {
    reporter.close();
    throw error;
  });
  const counters = (): Record<string, number> => ({
    ...controller.counters(),
    ...Object.fromEntries(
      Object.entries(reporter.stats()).map(([name, value]) => [`reporter.${name}`, value]),
    ),
  });
  const metrics = options.selfMetrics
    ? new SelfMetrics(settings[0], counters, log, metricsIntervalMs)
    : undefined;
  return {
    async stop(hasReceiver = true) {
      if (hasReceiver) log.info(`stopping: sending the rest, up to ${Math.round(STOP_DEADLINE_MS / 1000)} s`);
      const deadline = performance.now() + STOP_DEADLINE_MS;
      await controller.stop();
      await reporter.flush(hasReceiver ? Math.max(MIN_FLUSH_MS, deadline - performance.now()) : 0);
      const nonZero = Object.entries(counters()).filter(([, value]) => value !== 0);
      log.info(`stopped: ${describeSent(reporter.stats())}`);
      log.debug({ counters: Object.fromEntries(nonZero) }, 'what the agent counted');
      await metrics?.stop();
      reporter.close();
    },
  };
}

const describeSent = ({ samplesSent = 0, samplesPushed = 0 }: Record<string, number>): string =>
  samplesSent >= samplesPushed
    ? `${samplesSent} samples sent`
    : `${samplesSent} of ${samplesPushed} samples sent, the others are lost`;

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
  const file = await findConfig(config, process.env);
  const options = parseAgentOptions(settings, { env: process.env, ...(file && { file: file.agent }) });
  if (!options.collectionAgent[0]) {
    throw new Error(
      '--collection-agent HOST:PORT is needed: where to push profiles ("everyframe run" brings a collector of its own)',
    );
  }
  const log = makeLogger('agent', options.verbose);
  for (const text of [...ignored, ...(file?.notes ?? [])]) log.warn(text);
  const agent = await startAgent({ options, transport: destinationOptions(options) }, log);
  log.info(
    `sampling ${options.samplesPerSecond} times a second on each CPU, pushing to ${options.collectionAgent.join(' and ')}`,
  );
  log.debug(`stopping: ${await untilSignal()}`);
  await agent.stop();
}
