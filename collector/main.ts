import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import { BadSetting } from '../common/base/bad-setting.ts';
import { startPageServer } from './api/page-server.ts';
import { statusResponse } from './api/responses.ts';
import { type ForwardSettings, forwardOptions } from './forward/forward-options.ts';
import { Forwarder } from './forward/forwarder.ts';
import { startGrpcServer } from './ingest/grpc-server.ts';
import { startHttpIngest } from './ingest/http-server.ts';
import type { IntakeOptions } from './ingest/intake.ts';
import { Receiver } from './ingest/receiver.ts';
import { type AccessFiles, readAccess } from './net/access.ts';
import { ByteBudget } from './net/byte-budget.ts';
import { ConnectionGate } from './net/connection-gate.ts';
import { formatAddress, type ListenAddress } from './net/listen.ts';
import { describeListenError, type ServerName } from './net/listen-error.ts';
import { readPageFiles } from './net/page-files.ts';
import { checkBeyondLoopback, readAddresses } from './net/reach.ts';
import { COLLECTOR_DEFAULTS } from './settings/options.ts';
import { SourceDirectoryError, SourceFiles } from './source/source-files.ts';
import type { StatusResponse, WatchedAgent } from './status/status.ts';
import { asOwner, type DataOwner, explainLock } from './store/duckdb/data-directory.ts';
import { MemoryStore } from './store/memory/memory-store.ts';
import type { Store } from './store/store.ts';
import { SymbolSources } from './symbols/symbol-sources.ts';

export interface CollectorOptions {
  /** `host:port`; port 0 takes a free one. */
  grpcListen: string;
  httpListen: string;
  pageListen: string;
  /** Bounds of the store; the process itself needs some 60 MiB more. */
  maxMemoryBytes: number;
  maxAgeMs?: number;
  /** Where samples are kept on disk; undefined: in memory. */
  data?: { directory: string; maxBytes: number; owner?: DataOwner | undefined };
  /** URL of a ClickHouse server that keeps them, with user, password and database. */
  clickhouse?: string | undefined;
  /** TLS and the token that requests need: files, read at the start. */
  access?: AccessFiles;
  /** Where the servers speak TLS: another one for OTLP over gRPC on loopback that does not, at `urls.grpc`. */
  plainLoopback?: boolean;
  /** Others may reach it without a token. */
  allowAnyone?: boolean;
  /** Bytes of requests a second that one address may send. */
  maxSenderRate?: number;
  /** Directories whose files the page may show as source; by default none. */
  source?: readonly string[];
  /** URL of a trace, with {trace_id} in place of its ID. */
  traceUrl?: string | undefined;
  /** Another receiver that gets all that arrives, too. */
  forward?: ForwardSettings;
  /** The agent that stands or falls beside it. */
  agent?: () => WatchedAgent | undefined;
  /** Directory of the built page; by default build/web of this package. */
  pageDirectory?: string;
  logger: Pick<Logger, 'info' | 'warn' | 'error'>;
}

export interface Collector {
  urls: {
    /** Where a browser on this machine finds the page. */
    page: string;
    /** `host:port` for an agent's --collection-agent. */
    grpc: string;
    /** OTLP over HTTP: the whole URL to post to. */
    http: string;
  };
  store: Store;
  /** What it says of itself now. */
  status(): StatusResponse;
  /**
   * Reads certificate and token again; false where one of them is new or gone, which takes a start.
   *
   * @throws Error with a sentence; the old ones stay
   */
  renewAccess(files: AccessFiles): boolean;
  stop(): Promise<void>;
}

/** The collector can't start, for a reason that its user can change. */
export class CollectorStartError extends Error {
  override name = 'CollectorStartError';
}

/**
 * Starts ingest, store, queries and page.
 *
 * @throws CollectorStartError when an address can't be used or the page is not built; nothing keeps running
 */
export async function startCollector(options: CollectorOptions): Promise<Collector> {
  const now = Date.now;
  const { logger } = options;
  const listen = checked(() => readAddresses(options));
  const access = checked(() => readAccess(options.access ?? {}));
  for (const warning of checked(() => checkBeyondLoopback(listen, access, options)))
    options.logger.warn(warning);
  const files = readFiles(options.pageDirectory);
  const sources = await openSources(options);
  const forwarder = makeForwarder(options);
  const store = await openStore(options, now);
  const receiver = new Receiver(
    store,
    now,
    logger,
    options.maxSenderRate ?? COLLECTOR_DEFAULTS.maxSenderRate,
    forwarder,
  );
  const symbols = new SymbolSources(options.data && join(options.data.directory, 'symbols'), logger);
  const budget = new ByteBudget(COLLECTOR_DEFAULTS.maxBytesInFlight);
  const gate = new ConnectionGate({ note: (reason) => receiver.refuse(reason) });
  const intake = { receiver, access, budget, gate };
  const running = new RunningServers();
  try {
    const grpcPort = await running.add('grpc', listen.grpc, () => startGrpcServer(listen.grpc, intake));
    const plainPort =
      options.plainLoopback && access.tls ? await addPlainLoopback(running, intake) : undefined;
    const httpPort = await running.add('http', listen.http, () => startHttpIngest(listen.http, intake));
    const urls = {
      grpc: plainPort === undefined ? reachable(listen.grpc, grpcPort) : `127.0.0.1:${plainPort}`,
      http: `${access.scheme}://${reachable(listen.http, httpPort)}/v1development/profiles`,
      page: '',
    };
    const { grpc, http } = urls;
    const status = {
      stats: receiver.stats,
      store,
      listen: { grpc, http },
      startedMs: now(),
      traceUrl: options.traceUrl,
      forwarder,
      budget,
      gate,
      agent: options.agent,
    };
    const pagePort = await running.add('page', listen.page, () =>
      startPageServer({
        listen: listen.page,
        access,
        files,
        status,
        symbols,
        sources,
        now,
        logger,
      }),
    );
    urls.page = `${access.scheme}://${reachable(listen.page, pagePort)}/`;
    const stop = async (): Promise<void> => {
      await running.stop();
      gate.close();
      await symbols.close();
      await Promise.all([forwarder?.stop(), store.close()]);
    };
    return {
      urls,
      store,
      status: () => statusResponse(status, now()),
      renewAccess: (files) => access.renew(readAccess(files)),
      stop,
    };
  } catch (error) {
    await running.stop();
    gate.close();
    await Promise.all([forwarder?.stop(), store.close()]);
    throw error;
  }
}

/** For an agent of this machine: no certificate is for the name "localhost". */
function addPlainLoopback(running: RunningServers, intake: IntakeOptions): Promise<number> {
  const address = { host: '127.0.0.1', port: 0 };
  const access = intake.access?.withoutTls();
  return running.add('grpc', address, () => startGrpcServer(address, { ...intake, access }));
}

async function openSources({ source = [] }: CollectorOptions): Promise<SourceFiles> {
  try {
    return await SourceFiles.open(source);
  } catch (error) {
    if (!(error instanceof SourceDirectoryError)) throw error;
    throw new CollectorStartError(error.message, { cause: error });
  }
}

function makeForwarder({ forward, logger }: CollectorOptions): Forwarder | undefined {
  if (forward === undefined) return undefined;
  try {
    return new Forwarder(forwardOptions(forward), logger);
  } catch (error) {
    if (!(error instanceof BadSetting)) throw error;
    throw new CollectorStartError(error.message, { cause: error });
  }
}

async function openStore(
  { data, clickhouse, maxMemoryBytes, maxAgeMs, logger }: CollectorOptions,
  now: () => number,
): Promise<Store> {
  if (clickhouse !== undefined) {
    return openClickHouse(clickhouse, maxAgeMs ?? COLLECTOR_DEFAULTS.maxAgeMs.kept, now, logger);
  }
  if (data === undefined) {
    return new MemoryStore({
      maxBytes: maxMemoryBytes,
      maxAgeMs: maxAgeMs ?? COLLECTOR_DEFAULTS.maxAgeMs.inMemory,
      now,
    });
  }
  // Loaded here: the database's binary is large, and a collector in memory starts without it.
  const { DuckDbStore } = await import('./store/duckdb/duckdb-store.ts');
  const { directory, maxBytes, owner } = data;
  const age = maxAgeMs ?? COLLECTOR_DEFAULTS.maxAgeMs.kept;
  try {
    return await asOwner(directory, owner, () =>
      DuckDbStore.open({ directory, maxBytes, maxAgeMs: age, now, logger }),
    );
  } catch (error) {
    throw new CollectorStartError(`--data ${data.directory}: ${explainLock((error as Error).message)}`, {
      cause: error,
    });
  }
}

async function openClickHouse(
  url: string,
  maxAgeMs: number,
  now: () => number,
  logger: CollectorOptions['logger'],
): Promise<Store> {
  const { ClickHouseStore } = await import('./store/clickhouse/clickhouse-store.ts');
  try {
    return await ClickHouseStore.open({ url, maxAgeMs, now, logger });
  } catch (error) {
    // The URL may hold a password.
    const where = URL.canParse(url) ? new URL(url).host : 'what is given';
    throw new CollectorStartError(
      `--clickhouse: ${where} can't be used: ${(error as Error).message || String(error)}`,
      { cause: error },
    );
  }
}

function readFiles(directory = packageFile('build/web')): ReturnType<typeof readPageFiles> {
  try {
    return readPageFiles(directory);
  } catch (error) {
    throw new CollectorStartError((error as Error).message, { cause: error });
  }
}

/** This file runs from dist/collector, and in tests from collector. */
function packageFile(path: string): string {
  const here = new URL('.', import.meta.url);
  const root = here.pathname.endsWith('/dist/collector/') ? '../../' : '../';
  return fileURLToPath(new URL(root + path, here));
}

/** Stops what was started, the last first. */
class RunningServers {
  readonly #stops: (() => Promise<void>)[] = [];

  async add(
    name: ServerName,
    address: ListenAddress,
    start: () => Promise<{ port: number; stop(): Promise<void> }>,
  ): Promise<number> {
    try {
      const { port, stop } = await start();
      this.#stops.unshift(stop);
      return port;
    } catch (error) {
      throw new CollectorStartError(describeListenError(error, name, address), { cause: error });
    }
  }

  async stop(): Promise<void> {
    await Promise.all(this.#stops.splice(0).map((stop) => stop()));
  }
}

/** Where this machine reaches a server; one that listens everywhere has no address of its own. */
function reachable({ host }: ListenAddress, port: number): string {
  return formatAddress({ host: host === '0.0.0.0' || host === '::' ? 'localhost' : host, port });
}

/** What a start refuses, in a sentence. */
function checked<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new CollectorStartError((error as Error).message, { cause: error });
  }
}
