import { fileURLToPath } from 'node:url';
import { BadSetting } from '../common/base/bad-setting.ts';
import { startPageServer } from './api/page-server.ts';
import { type StatusSources, statusResponse } from './api/responses.ts';
import { type ForwardSettings, forwardOptions } from './forward/forward-options.ts';
import { Forwarder } from './forward/forwarder.ts';
import { startGrpcServer } from './ingest/grpc-server.ts';
import { startHttpIngest } from './ingest/http-server.ts';
import type { IntakeOptions } from './ingest/intake.ts';
import { Receivers } from './ingest/receivers.ts';
import { type AccessFiles, readAccess } from './net/access.ts';
import { ByteBudget } from './net/byte-budget.ts';
import { ConnectionGate } from './net/connection-gate.ts';
import { formatAddress, type ListenAddress } from './net/listen.ts';
import { describeListenError, type ServerName } from './net/listen-error.ts';
import { readPageFiles } from './net/page-files.ts';
import { checkBeyondLoopback, readAddresses } from './net/reach.ts';
import { COLLECTOR_DEFAULTS } from './settings/options.ts';
import { CollectorStartError } from './settings/start-error.ts';
import { SOLE_TENANT } from './settings/tenants.ts';
import { SourceDirectoryError, SourceFiles } from './source/source-files.ts';
import type { CollectorStatus, WatchedAgent } from './status/status.ts';
import { closeTenants, openTenants, type Tenant, type TenantOptions } from './tenants/tenant.ts';

export interface CollectorOptions extends TenantOptions {
  /** `host:port`; port 0 takes a free one. */
  grpcListen: string;
  httpListen: string;
  pageListen: string;
  /** TLS and the tokens that requests need: files, read at the start. */
  access?: AccessFiles;
  /** Where the servers speak TLS: another one for OTLP over gRPC on loopback that does not, at `urls.grpc`. */
  plainLoopback?: boolean;
  /** Others may reach it without a token. */
  allowAnyone?: boolean;
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
  /** One without a name where it has no tenants. */
  tenants: readonly Pick<Tenant, 'name' | 'store'>[];
  /** What it says of itself now. */
  status(): CollectorStatus;
  /**
   * Reads certificate and tokens again; false where one of them is new or gone, which takes a start.
   *
   * @throws Error with a sentence; the old ones stay
   */
  renewAccess(files: AccessFiles): boolean;
  stop(): Promise<void>;
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
  const tenants = await openTenants(access.tenants, options, now, forwarder);
  const receivers = new Receivers(new Map(tenants.map(({ name, receiver }) => [name, receiver])), now);
  const budget = new ByteBudget(COLLECTOR_DEFAULTS.maxBytesInFlight);
  const gate = new ConnectionGate({ note: (reason) => receivers.refuse(reason) });
  const intake = { receivers, access, budget, gate };
  const running = new RunningServers();
  const stop = async (): Promise<void> => {
    await running.stop();
    gate.close();
    await Promise.all([forwarder?.stop(), closeTenants(tenants)]);
  };
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
    const startedMs = now();
    const shown = tenants.map(({ name, receiver: { stats }, store, symbols }) => {
      const { traceUrl, agent } = options;
      // what all share is nothing that one of several is shown
      const shared = name === SOLE_TENANT ? { budget, gate } : { tenant: name };
      const status: StatusSources = {
        stats,
        store,
        listen: { grpc, http },
        startedMs,
        traceUrl,
        forwarder,
        agent,
        ...shared,
      };
      return [name, { status, symbols }] as const;
    });
    const pagePort = await running.add('page', listen.page, () =>
      startPageServer({
        listen: listen.page,
        access,
        files,
        tenants: new Map(shown),
        sources,
        gate,
        budget,
        refuse: (reason) => receivers.refuse(reason),
        now,
        logger,
      }),
    );
    urls.page = `${access.scheme}://${reachable(listen.page, pagePort)}/`;
    return {
      urls,
      tenants,
      status: () => ({
        tenants: shown.map(([, { status }]) => statusResponse(status, now())),
        requestMemory: budget.stats(),
        connections: gate.stats(),
        unauthenticated: access.tenants.includes(SOLE_TENANT) ? 0 : receivers.unauthenticated.refusals.total,
      }),
      renewAccess: (files) => access.renew(readAccess(files)),
      stop,
    };
  } catch (error) {
    await stop();
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
