/** The agent with its reporters: what `agent` and `run` start. */
import type { Logger } from 'pino';
import { Destinations } from '../../agent/reporter/destinations.ts';
import { DryRun } from '../../agent/reporter/dry-run.ts';
import { resourceFromEnvironment } from '../../agent/reporter/resource-environment.ts';
import { SelfMetrics } from '../../agent/reporter/self-metrics.ts';
import type { AgentOptions } from '../../agent/settings/options.ts';
import type { Pid } from '../../common/base/brand.ts';
import type { Profile } from '../../common/profile/model/profile.ts';
import type { SenderOptions } from '../../otlp-client/request-sender.ts';
import { raisePriority } from './priority.ts';
import { controllerOptions, startController } from './start-agent.ts';

/** From the signal on: the last interval has left by then. */
const STOP_DEADLINE_MS = 4500;
/** Also where naming took long, a receiver gets that long to take it; names that are missing by then it goes without. */
const MIN_FLUSH_MS = 1000;

export interface RunningAgent {
  /** False once all that were chosen have ended. */
  readonly hasTargets: boolean;
  counters(): Record<string, number>;
  /** Other settings, as far as they can change while it samples: see LIVE_SETTINGS. */
  change(options: AgentOptions, transport: Transport | 'dry run'): void;
  /** Without a receiver what waits for it is dropped, and counted. */
  stop(hasReceiver?: boolean): Promise<void>;
}

/** The first one gets the agent's own metrics as well. */
export type Transport = readonly [SenderOptions, ...SenderOptions[]];

export interface AgentSettings {
  options: AgentOptions;
  /** Where to push; sampling does not wait for it. `dry run`: nowhere, what would be pushed is told. */
  transport: Transport | Promise<Transport> | 'dry run';
  /** These processes and what descends from them, nothing else; files of theirs that are read before the first samples. */
  chosen?: { targets: Pid[]; expectedFiles: string[] } | undefined;
  /** A collector shares its memory limit. */
  withCollector?: boolean;
  /** Of --self-metrics; by default a minute. */
  metricsIntervalMs?: number;
}

/** Samples and pushes until stopped. */
export async function startAgent(
  { options, transport, chosen, withCollector = false, metricsIntervalMs }: AgentSettings,
  log: Logger,
): Promise<RunningAgent> {
  const sending = Promise.resolve(transport).then((settings) =>
    settings === 'dry run'
      ? { settings: [], reporter: new DryRun(log) }
      : { settings, reporter: new Destinations(settings, log) },
  );
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
    startController({ ...controllerOptions(options, log, { withCollector }), ...chosen }, { push }, log),
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
  const measure = (to: SenderOptions | undefined): SelfMetrics | undefined =>
    to && options.selfMetrics ? new SelfMetrics(to, counters, log, metricsIntervalMs) : undefined;
  let metrics = measure(settings[0]);
  return {
    get hasTargets() {
      return controller.hasTargets;
    },
    counters,
    change(wanted, transport) {
      log.level = wanted.verbose ? 'debug' : 'info';
      controller.changeIntervals({ intervalMs: wanted.reporterInterval, jitter: wanted.reporterJitter });
      if (transport === 'dry run') return;
      reporter.replace(transport);
      void metrics?.stop();
      metrics = measure(transport[0]);
    },
    async stop(hasReceiver = true) {
      if (hasReceiver && settings.length > 0)
        log.info(`stopping: sending the rest, up to ${Math.round(STOP_DEADLINE_MS / 1000)} s`);
      const deadline = performance.now() + STOP_DEADLINE_MS;
      await controller.stop(STOP_DEADLINE_MS - MIN_FLUSH_MS);
      await reporter.flush(hasReceiver ? Math.max(MIN_FLUSH_MS, deadline - performance.now()) : 0);
      const nonZero = Object.entries(counters()).filter(([, value]) => value !== 0);
      log.info(`stopped: ${describeSent(reporter.stats())}`);
      log.debug({ counters: Object.fromEntries(nonZero) }, 'what the agent counted');
      await metrics?.stop();
      reporter.close();
    },
  };
}

/** A dry run counts none as sent. */
function describeSent({ samplesSent, samplesPushed = 0 }: Record<string, number>): string {
  if (samplesSent === undefined) return `${samplesPushed} samples would have been sent`;
  return samplesSent >= samplesPushed
    ? `${samplesSent} samples sent`
    : `${samplesSent} of ${samplesPushed} samples sent, the others are lost`;
}
