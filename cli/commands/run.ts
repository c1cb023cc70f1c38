/** `everyframe`: agent and collector as two processes, the collector without rights; whichever dies is started again. */
import { hostname, userInfo } from 'node:os';
import { type Command, Option } from 'commander';
import { reporterOptions } from '../../agent/reporter/options.ts';
import { parseAgentOptions } from '../../agent/settings/options.ts';
import { readToken } from '../../collector/net/access.ts';
import { COLLECTOR_DEFAULTS } from '../../collector/settings/defaults.ts';
import { addAgentFlags, collect, splitAgentFlags } from '../program/agent-flags.ts';
import { addExamples } from '../program/examples.ts';
import { makeLogger } from '../program/logger.ts';
import { startCollectorProcess, UNPRIVILEGED_USER } from '../start/collector-process.ts';
import { untilSignal } from '../start/start-agent.ts';
import { START_AGAIN, Supervisor } from '../start/supervisor.ts';
import { startAgent } from './agent.ts';

const COLLECTOR_FLAGS = [
  'grpc-listen',
  'http-listen',
  'page-listen',
  'max-memory',
  'data',
  'max-disk',
  'max-age',
  'tls-cert',
  'tls-key',
  'token-file',
  'max-sender-rate',
  'forward-to',
  'forward-tls-ca',
  'forward-headers-file',
  'max-forward-queue',
] as const;
/** The page's health view shows what the agent counts. */
const METRICS_INTERVAL_MS = 5000;

export function registerRun(program: Command): void {
  const command = program
    .command('run', { isDefault: true })
    .description('profile this machine and show it on a page (the default)')
    .option('--grpc-listen <HOST:PORT>', `OTLP over gRPC (default: ${COLLECTOR_DEFAULTS.grpcListen})`)
    .option('--http-listen <HOST:PORT>', `OTLP over HTTP (default: ${COLLECTOR_DEFAULTS.httpListen})`)
    .option('--page-listen <HOST:PORT>', `the page (default: ${COLLECTOR_DEFAULTS.pageListen})`)
    .option('--max-memory <SIZE>', "room for the collector's samples (default: 256MiB)")
    .option(
      '--data <DIR>',
      `keep samples in this directory of user ${UNPRIVILEGED_USER}, instead of in memory`,
    )
    .option('--max-disk <SIZE>', 'with --data: room for samples (default: 10GiB)')
    .option('--max-age <LENGTH>', 'drop samples older than this (default: 1h, with --data 30d)')
    .option('--tls-cert <FILE>', 'serve TLS with this certificate (PEM), on every address')
    .option('--tls-key <FILE>', 'its private key (PEM)')
    .option('--token-file <FILE>', 'take only requests with the token in this file, on every address')
    .option('--max-sender-rate <SIZE>', 'what one address may send a second (default: 32MiB)')
    .option('--forward-to <HOST:PORT>', 'pass on all that arrives to this OTLP gRPC receiver too')
    .option('--forward-tls-ca <FILE>', 'certificate authorities to trust there')
    .option('--forward-headers-file <FILE>', 'gRPC metadata to send there, NAME=VALUE a line')
    .option('--max-forward-queue <SIZE>', 'memory for what waits for it (default: 64MiB)')
    .addOption(
      new Option(
        '--source <DIR>',
        `show source files below this directory, as far as user ${UNPRIVILEGED_USER} can read them (repeatable)`,
      ).argParser(collect),
    )
    .option('--allow-anyone', 'listen beyond this machine without a token')
    .action(run);
  addAgentFlags(command, [
    'collection-agent',
    'max-memory',
    'disable-tls',
    'tls-ca',
    'tls-cert',
    'tls-key',
    'header',
    'headers-file',
    'self-metrics',
  ]);
  addExamples(command, [
    ['everyframe', 'profiles this machine, and prints the address of the page'],
    ['everyframe run --data /var/lib/everyframe --max-age 7d', 'keeps a week on disk'],
  ]);
}

async function run(flags: Record<string, unknown>): Promise<void> {
  const { settings, ignored } = splitAgentFlags(flags);
  const { tokenFile } = settings;
  const collectorArguments = COLLECTOR_FLAGS.flatMap((flag) => {
    const name = flag.replace(/-([a-z])/g, (_, c: string) => c.toUpperCase());
    const value = settings[name];
    delete settings[name];
    return value === undefined ? [] : [`--${flag}`, String(value)];
  });
  for (const directory of (settings['source'] ?? []) as string[])
    collectorArguments.push('--source', directory);
  delete settings['source'];
  if (settings['allowAnyone'] === true) collectorArguments.push('--allow-anyone');
  delete settings['allowAnyone'];
  const log = makeLogger('everyframe', settings['verbose'] === true);
  for (const text of ignored) log.warn(text);
  const options = parseAgentOptions(settings, process.env);
  const header = typeof tokenFile === 'string' ? [`authorization=Bearer ${readToken(tokenFile)}`] : [];
  // from here on, so that a Ctrl-C while it starts ends it in order
  const signalled = untilSignal();
  const supervisor = Supervisor.of(process.env);
  const starting = startCollectorProcess(collectorArguments, supervisor);
  // both take a second on a busy machine: the agent samples before the collector is ready
  const transport = starting.then(({ ready }) =>
    reporterOptions({ ...options, header, collectionAgent: ready.grpc, disableTls: true }),
  );
  const agent = await startAgent(
    {
      options: { ...options, selfMetrics: true },
      transport,
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
  else announce(collector.ready.page, options.samplesPerSecond);
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

function announce(page: string, samplesPerSecond: number): void {
  const { port } = new URL(page);
  console.log(`everyframe samples this machine ${samplesPerSecond} times a second on each CPU.`);
  console.log(`Open ${page}`);
  if (process.env['SSH_CONNECTION']) {
    console.log(
      `From your own machine: ssh -L ${port}:127.0.0.1:${port} ${userInfo().username}@${hostname()}`,
    );
  }
  console.log('Ctrl-C ends it.');
}
