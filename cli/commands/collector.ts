import { readFileSync, statSync } from 'node:fs';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { CAPABILITY_BITS } from '../../agent/host/capabilities.ts';
import type { ForwardSettings } from '../../collector/forward/forward-options.ts';
import { type Collector, CollectorStartError, startCollector } from '../../collector/main.ts';
import { COLLECTOR_DEFAULTS } from '../../collector/settings/defaults.ts';
import type { DataOwner } from '../../collector/store/duckdb/data-directory.ts';
import { parseBytes } from '../../common/base/size.ts';
import { collect } from '../program/agent-flags.ts';
import { addExamples } from '../program/examples.ts';
import { makeLogger } from '../program/logger.ts';
import { AgentLife } from '../start/agent-life.ts';
import type { CollectorReady } from '../start/collector-ready.ts';
import { readMemoryLimit, storeBudget } from '../start/memory-limit.ts';
import { giveUpRights } from '../start/rights.ts';
import { registerImport } from './collector-import.ts';

interface CollectorFlags {
  grpcListen: string;
  httpListen: string;
  pageListen: string;
  maxMemory: number;
  data?: string;
  clickhouse?: string;
  maxDisk: number;
  maxAge?: number;
  tlsCert?: string;
  tlsKey?: string;
  tokenFile?: string;
  allowAnyone?: true;
  maxSenderRate: number;
  forwardTo?: string;
  forwardTlsCa?: string;
  forwardHeadersFile?: string;
  maxForwardQueue: number;
  source?: string[];
  user?: string;
  plainLoopback?: true;
  child?: true;
}

export function registerCollector(program: Command): void {
  const collector = program
    .command('collector')
    .enablePositionalOptions()
    .description('receive profiles over OTLP, keep them in memory or on disk, and show them on a page')
    .option('--grpc-listen <HOST:PORT>', 'OTLP over gRPC', COLLECTOR_DEFAULTS.grpcListen)
    .option('--http-listen <HOST:PORT>', 'OTLP over HTTP', COLLECTOR_DEFAULTS.httpListen)
    .option('--page-listen <HOST:PORT>', 'the page and its API', COLLECTOR_DEFAULTS.pageListen)
    .addOption(
      new Option('--max-memory <SIZE>', 'room for samples, such as 512MiB or 2GiB: the oldest are dropped')
        .argParser(parseSize)
        .default(COLLECTOR_DEFAULTS.maxMemoryBytes, '256MiB'),
    )
    .option('--data <DIR>', 'keep samples in this directory, instead of in memory')
    .addOption(
      new Option(
        '--clickhouse <URL>',
        'keep samples in this ClickHouse, such as http://USER:PASSWORD@HOST:8123/DATABASE',
      )
        .env('EVERYFRAME_CLICKHOUSE')
        .conflicts('data'),
    )
    .addOption(
      new Option('--max-disk <SIZE>', 'with --data: room for samples, the oldest are dropped')
        .argParser(parseSize)
        .default(COLLECTOR_DEFAULTS.maxDiskBytes, '10GiB'),
    )
    .addOption(
      new Option(
        '--max-age <LENGTH>',
        'drop samples older than this, such as 6h or 7d (default: 1h, with --data or --clickhouse 30d)',
      ).argParser(parseAge),
    )
    .option('--tls-cert <FILE>', 'serve TLS with this certificate (PEM), on every address')
    .option('--tls-key <FILE>', 'its private key (PEM)')
    .option('--token-file <FILE>', 'take only requests with the token in this file, on every address')
    .option('--allow-anyone', 'listen beyond this machine without a token')
    .addOption(
      new Option('--max-sender-rate <SIZE>', 'what one address may send a second; more has to wait')
        .argParser(parseRate)
        .default(COLLECTOR_DEFAULTS.maxSenderRate, '32MiB'),
    )
    .option(
      '--forward-to <HOST:PORT>',
      'pass on all that arrives to this OTLP gRPC receiver too: with TLS, unless it is on this machine or written ' +
        'http://HOST:PORT',
    )
    .option('--forward-tls-ca <FILE>', 'certificate authorities to trust there')
    .option('--forward-headers-file <FILE>', 'gRPC metadata to send there, NAME=VALUE a line')
    .addOption(
      new Option('--max-forward-queue <SIZE>', 'memory for what waits for it: the oldest is dropped')
        .argParser(parseSize)
        .default(COLLECTOR_DEFAULTS.maxForwardQueueBytes, '64MiB'),
    )
    .addOption(
      new Option(
        '--source <DIR>',
        'show source files below this directory on the page, where samples are in them (repeatable)',
      ).argParser(collect),
    )
    .option('--user <NAME>', 'become this user once everything listens (needs root)')
    .addOption(new Option('--plain-loopback', 'with TLS: a gRPC server without, on loopback').hideHelp())
    .addOption(new Option('--child', 'report to the parent process, and end with it').hideHelp())
    .action(runCollector);
  addExamples(collector, [
    ['everyframe collector --data /var/lib/everyframe', 'keeps what arrives on disk'],
    [
      'everyframe collector --grpc-listen 0.0.0.0:11000 --token-file token',
      'takes what other machines send with that token',
    ],
  ]);
  registerImport(collector);
}

async function runCollector(flags: CollectorFlags): Promise<void> {
  const logger = makeLogger('collector');
  const life = flags.child && new AgentLife();
  let collector: Collector;
  try {
    const { data, maxDisk, maxAge, maxMemory, tlsCert, tlsKey, tokenFile, user: userName, ...rest } = flags;
    const user = userName === undefined ? undefined : findUser(userName);
    collector = await startCollector({
      ...rest,
      access: { tlsCert, tlsKey, tokenFile },
      maxMemoryBytes: storeBudget(maxMemory, readMemoryLimit(), logger, { withAgent: life !== undefined }),
      ...(maxAge === undefined ? {} : { maxAgeMs: maxAge }),
      ...(data === undefined ? {} : { data: { directory: data, maxBytes: maxDisk, owner: user } }),
      ...(flags.forwardTo !== undefined && { forward: forwardSettings(flags, flags.forwardTo) }),
      ...(life && { agent: () => life.state }),
      logger,
    });
    giveUpRights(
      () => user && becomeUser(user),
      user ? [] : rightsOfRoot(flags),
      (text) => logger.warn(text),
    );
  } catch (error) {
    if (!(error instanceof CollectorStartError)) throw error;
    logger.error(error.message);
    // Servers may be listening: an exit code alone would not end the process.
    process.exit(1);
  }
  const { urls, stop } = collector;
  if (flags.child) {
    process.send?.({ grpc: urls.grpc, page: urls.page } satisfies CollectorReady);
  } else {
    process.stdout.write(`Open ${urls.page}\nAgents send to ${urls.grpc} (gRPC) or ${urls.http}\n`);
  }
  const reason = await Promise.race([untilSignal(), ...(life ? [life.ended] : [])]);
  if (reason === 'orphaned') {
    logger.error('the process that started this collector is gone: ending too');
    process.exitCode = 1;
  }
  await stop();
  life?.close();
}

const forwardSettings = (
  { forwardTlsCa, forwardHeadersFile, maxForwardQueue }: CollectorFlags,
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

/** @throws CollectorStartError when there is no such user */
export function findUser(name: string): DataOwner {
  const entry = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
    .find(([user]) => user === name);
  if (entry === undefined) throw new CollectorStartError(`--user ${name}: /etc/passwd has no such user`);
  return { name, uid: Number(entry[2]), gid: Number(entry[3]) };
}

/**
 * Gives up root for good, and every supplementary group with it.
 *
 * @throws CollectorStartError when this process may not become that user
 */
export function becomeUser({ name, uid, gid }: DataOwner): void {
  try {
    process.setgroups!([]);
    process.setgid!(gid);
    process.setuid!(uid);
  } catch (error) {
    throw new CollectorStartError(`--user ${name}: ${(error as Error).message}; only root can do this`);
  }
}

/** One that stays root reads and writes what it was told to, also where that is other users'. */
const rightsOfRoot = ({ source, data }: CollectorFlags): number[] => [
  ...(source ? [CAPABILITY_BITS.CAP_DAC_READ_SEARCH] : []),
  ...(data !== undefined && statSync(data).uid !== process.geteuid?.()
    ? [CAPABILITY_BITS.CAP_DAC_OVERRIDE]
    : []),
];

const MIN_BYTES = 16 * 2 ** 20;

/** Bytes; see {@link parseBytes}. */
export function parseSize(text: string): number {
  const bytes = readBytes(text);
  if (bytes < MIN_BYTES) throw new InvalidArgumentError('at least 16MiB are needed.');
  return bytes;
}

function parseRate(text: string): number {
  const bytes = readBytes(text);
  if (bytes < 1024) throw new InvalidArgumentError('at least 1K are needed.');
  return bytes;
}

function readBytes(text: string): number {
  const bytes = parseBytes(text);
  if (Number.isNaN(bytes)) throw new InvalidArgumentError('write a size such as 512MiB or 2GiB.');
  return bytes;
}

const AGE_MS: Record<string, number> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `90m`, `6h`, `7d`. */
export function parseAge(text: string): number {
  const match = /^(\d{1,6}(?:\.\d+)?)([mhd])$/.exec(text.trim());
  const ms = match === null ? 0 : Number(match[1]) * AGE_MS[match[2]!]!;
  if (!(ms >= 60_000)) throw new InvalidArgumentError('write a length of time such as 90m, 6h or 7d.');
  return ms;
}
