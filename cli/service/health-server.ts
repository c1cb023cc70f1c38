/**
 * What watches services asks here: `/healthz` (it runs), `/readyz` (it does its work), `/metrics` (what it counts, for
 * Prometheus). Without a token: it shows numbers, no names.
 */
import { createServer, type Server, type ServerResponse } from 'node:http';
import { formatAddress, listenOn, parseListenAddress } from '../../collector/net/listen.ts';
import { BadSetting } from '../../common/base/bad-setting.ts';
import { PROMETHEUS_TYPE, type PrometheusMetric, prometheusText } from '../../common/base/prometheus.ts';

export interface Health {
  /** Why it does not do its work; undefined when it does. */
  problem(): string | undefined;
  metrics(): PrometheusMetric[];
}

export interface HealthServer {
  /** `host:port` */
  address: string;
  close(): void;
}

const LIMITS = { maxHeaderSize: 8192, headersTimeout: 5000, requestTimeout: 5000, keepAliveTimeout: 30_000 };
const MAX_CONNECTIONS = 32;

/** @throws BadSetting where it can't listen there */
export async function startHealthServer(text: string, health: Health): Promise<HealthServer> {
  const server = createServer(LIMITS, (request, response) => {
    const path = request.url?.replace(/\?.*/s, '') ?? '';
    if (request.method !== 'GET' && request.method !== 'HEAD') answer(response, 405, 'only GET is served\n');
    else answerPath(path, health, response);
  });
  server.maxConnections = MAX_CONNECTIONS;
  server.unref();
  try {
    const address = parseListenAddress(text);
    const port = await listenOn(server, address);
    // a connection that can't be accepted is one that has no answer
    server.on('error', () => {});
    return { address: formatAddress({ ...address, port }), close: () => stop(server) };
  } catch (error) {
    throw new BadSetting(`--metrics-address ${text}: ${(error as Error).message}`);
  }
}

function answerPath(path: string, health: Health, response: ServerResponse): void {
  if (path === '/healthz') answer(response, 200, 'ok\n');
  else if (path === '/readyz') {
    const problem = health.problem();
    answer(response, problem === undefined ? 200 : 503, `${problem ?? 'ok'}\n`);
  } else if (path === '/metrics') answer(response, 200, prometheusText(health.metrics()), PROMETHEUS_TYPE);
  else answer(response, 404, 'here are /healthz, /readyz and /metrics\n');
}

function answer(
  response: ServerResponse,
  status: number,
  body: string,
  type = 'text/plain; charset=utf-8',
): void {
  response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(body);
}

function stop(server: Server): void {
  server.close();
  server.closeAllConnections();
}
