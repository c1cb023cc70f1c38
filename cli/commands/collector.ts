import { statSync } from 'node:fs';
import type { Command } from 'commander';
import type { Logger } from 'pino';
import { CAPABILITY_BITS } from '../../agent/host/capabilities.ts';
import type { ForwardSettings } from '../../collector/forward/forward-options.ts';
import { type Collector, startCollector } from '../../collector/main.ts';
import {
  COLLECTOR_SETTINGS,
  type CollectorSettings,
  parseCollectorSettings,
} from '../../collector/settings/options.ts';
import { addConfigFlag, DEFAULT_CONFIG, findConfig } from '../config/find-config.ts';
import { addExamples } from '../program/examples.ts';
import { makeLogger } from '../program/logger.ts';
import { addSetting } from '../program/settings.ts';
import { collectorMetrics } from '../service/collector-metrics.ts';
import { onReload } from '../service/hangup.ts';
import { type HealthServer, startHealthServer } from '../service/health-server.ts';
import { reloadCollector } from '../service/reload-collector.ts';
import { Systemd } from '../service/systemd.ts';
import { AgentLife } from '../start/agent-life.ts';
import type { CollectorReady } from '../start/collector-ready.ts';
import { becomeUser, findUser } from '../start/collector-user.ts';
import { readMemoryLimit, storeBudget } from '../start/memory-limit.ts';
import { giveUpRights } from '../start/rights.ts';
import { startTelemetry } from '../telemetry/telemetry.ts';
import { registerImport } from './collector-import.ts';

export function registerCollector(program: Command): void {
  const collector = program
    .command('collector')
    .enablePositionalOptions()
    .description('receive profiles over OTLP, keep them in memory or on disk, and show them on a page')
    .action(readSettings);
  addConfigFlag(collector);
  for (const setting of COLLECTOR_SETTINGS) addSetting(collector, setting);
  addExamples(collector, [
    ['everyframe collector --data /var/lib/everyframe', 'keeps what arrives on disk'],
    [
      'everyframe collector --grpc-listen 0.0.0.0:11000 --token-file token',
      'takes what other machines send with that token',
    ],
  ]);
  registerImport(collector);
}

async function readSettings({ config, ...flags }: Record<string, unknown>): Promise<void> {
  const otherwise = flags['child'] === true ? '' : DEFAULT_CONFIG;
  const read = async () => {
    const file = await findConfig(config as string | undefined, process.env, otherwise);
    const places = { env: process.env, ...(file && { file: file.collector }) };
    return { settings: parseCollectorSettings(flags, places), notes: file?.notes ?? [] };
  };
  const { settings, notes } = await read();
  const logger = makeLogger('collector');
  for (const note of notes) logger.warn(note);
  await runCollector(settings, read, logger);
}

type ReadSettings = () => Promise<{ settings: CollectorSettings; notes: readonly string[] }>;

async function runCollector(flags: CollectorSettings, read: ReadSettings, logger: Logger): Promise<void> {
  const systemd = new Systemd(process.env);
  const life = flags.child ? new AgentLife() : undefined;
  const { collector, health } = await start(flags, life, logger);
  const { urls, stop } = collector;
  const telemetry = startTelemetry(
    flags.telemetry,
    'collector',
    () => collectorMetrics(collector.status()),
    logger,
  );
  if (flags.child) {
    process.send?.({ grpc: urls.grpc, page: urls.page } satisfies CollectorReady);
  } else {
    announce(urls, logger);
  }
  const status = `page at ${urls.page}, OTLP at ${urls.grpc}`;
  let current = flags;
  if (!flags.child)
    onReload(async () => {
      systemd.reloading();
      current = await reloadCollector(current, read, collector, logger);
      systemd.ready(status);
    });
  systemd.ready(status);
  const reason = await Promise.race([untilSignal(), ...(life ? [life.ended] : [])]);
  if (reason === 'orphaned') {
    logger.error('the process that started this collector is gone: ending too');
    process.exitCode = 1;
  }
  systemd.stopping();
  await stop();
  await telemetry?.stop();
  health?.close();
  life?.close();
  systemd.close();
}

/** In words for whoever sits at the terminal; a service's log is JSON from its first line to its last. */
function announce({ page, grpc, http }: Collector['urls'], logger: Logger): void {
  const text = `Agents send to ${grpc} (gRPC) or ${http}`;
  if (process.stdout.isTTY || process.stderr.isTTY) process.stdout.write(`Open ${page}\n${text}\n`);
  else logger.info({ page, grpc, http }, `the page is at ${page}; a${text.slice(1)}`);
}

/** Listens, and has given up what only root may by then. */
async function start(
  flags: CollectorSettings,
  life: AgentLife | undefined,
  logger: Logger,
): Promise<{ collector: Collector; health: HealthServer | undefined }> {
  const {
    data,
    maxDisk,
    maxAge,
    maxMemory,
    tlsCert,
    tlsKey,
    tokenFile,
    tenant,
    user: userName,
    telemetry: _telemetry,
    ...rest
  } = flags;
  const user = userName === undefined ? undefined : findUser(userName);
  const collector = await startCollector({
    ...rest,
    access: { tlsCert, tlsKey, tokenFile, tenant },
    maxMemoryBytes: storeBudget(maxMemory, readMemoryLimit(), logger, { withAgent: life !== undefined }),
    ...(maxAge === undefined ? {} : { maxAgeMs: maxAge }),
    ...(data === undefined ? {} : { data: { directory: data, maxBytes: maxDisk, owner: user } }),
    ...(flags.forwardTo !== undefined && { forward: forwardSettings(flags, flags.forwardTo) }),
    ...(life && { agent: () => life.state }),
    logger,
  });
  const health = flags.metricsAddress
    ? await startHealthServer(flags.metricsAddress, {
        problem: () => problemOf(collector),
        metrics: () => collectorMetrics(collector.status()),
      })
    : undefined;
  if (health) logger.info(`/healthz, /readyz and /metrics are at http://${health.address}`);
  giveUpRights(
    () => user && becomeUser(user),
    user ? [] : rightsOfRoot(flags),
    (text) => logger.warn(text),
  );
  return { collector, health };
}

/** Of the first store that has one. */
function problemOf(collector: Collector): string | undefined {
  const troubled = collector.status().tenants.find(({ store }) => store.problem !== undefined);
  if (troubled === undefined) return undefined;
  const { tenant, store } = troubled;
  return tenant === undefined ? store.problem : `tenant ${tenant}: ${store.problem}`;
}

const forwardSettings = (
  { forwardTlsCa, forwardHeadersFile, maxForwardQueue }: CollectorSettings,
  to: string,
): ForwardSettings => ({
  to,
  tlsCa: forwardTlsCa,
  headersFile: forwardHeadersFile,
  maxQueueBytes: maxForwardQueue,
});

const untilSignal = (): Promise<'stopped'> =>
  new Promise((resolve) => {
    process.once('SIGTERM', () => resolve('stopped'));
    process.once('SIGINT', () => resolve('stopped'));
  });

/** One that stays root reads and writes what it was told to, also where that is other users'. */
const rightsOfRoot = ({ source, data }: CollectorSettings): number[] => [
  ...(source.length > 0 ? [CAPABILITY_BITS.CAP_DAC_READ_SEARCH] : []),
  ...(data !== undefined && statSync(data).uid !== process.geteuid?.()
    ? [CAPABILITY_BITS.CAP_DAC_OVERRIDE]
    : []),
];
