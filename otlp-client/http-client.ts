/** POSTs of bytes that are encoded already, over connections that are kept, through a proxy where the environment names one. */
import * as http from 'node:http';
import * as https from 'node:https';
import type { Duplex } from 'node:stream';
import * as tls from 'node:tls';
import { gzip } from 'node:zlib';
import type { ConnectionOptions } from './grpc-client.ts';
import { proxyFor, unescaped } from './proxy.ts';

export interface HttpAnswer {
  status: number;
  headers: http.IncomingHttpHeaders;
  body: Buffer;
}

/** Of one request; `code` is gRPC's word for it. */
export interface HttpFailure {
  code: 'UNAVAILABLE' | 'DEADLINE_EXCEEDED' | 'CANCELLED';
  message: string;
}

/** An answer is a few bytes; a receiver that sends more is wrong or hostile. */
const MAX_ANSWER_BYTES = 64 * 1024;
const CONTENT_TYPE = 'application/x-protobuf';

export class HttpClient {
  readonly #options: ConnectionOptions;
  readonly #isGzip: boolean;
  readonly #env: NodeJS.ProcessEnv;
  readonly #agents = new Map<string, http.Agent>();
  /** Ends the request under way. */
  #cancel = (): void => {};

  constructor(options: ConnectionOptions, isGzip: boolean, env = process.env) {
    this.#options = options;
    this.#isGzip = isGzip;
    this.#env = env;
  }

  /** One at a time. Never rejects. */
  post(url: URL, body: Uint8Array, deadlineMs: number): Promise<HttpAnswer | HttpFailure> {
    return new Promise((resolve) => this.#post(url, body, deadlineMs, resolve));
  }

  #post(url: URL, body: Uint8Array, deadlineMs: number, done: (end: HttpAnswer | HttpFailure) => void): void {
    let request: http.ClientRequest | undefined;
    let isDone = false;
    const end = (result: HttpAnswer | HttpFailure): void => {
      if (isDone) return;
      isDone = true;
      clearTimeout(timer);
      if (!('status' in result)) {
        request?.destroy();
        for (const agent of this.#agents.values()) if (agent instanceof TunnelAgent) agent.giveUp();
      }
      done(result);
    };
    const timer = setTimeout(
      () => end({ code: 'DEADLINE_EXCEEDED', message: `no answer within ${deadlineMs} ms` }),
      deadlineMs,
    );
    const fail = (error: Error): void =>
      end({ code: 'UNAVAILABLE', message: error.message || String(error) });
    const send = (bytes: Uint8Array): void => {
      if (isDone) return;
      request = this.#request(url, bytes.byteLength);
      request.on('error', fail).on('response', (response) => collect(response, end, fail));
      request.end(bytes);
    };
    if (this.#isGzip) gzip(body, (error, zipped) => (error ? fail(error) : send(zipped)));
    else send(body);
    this.#cancel = () => end({ code: 'CANCELLED', message: 'given up' });
  }

  /** The request under way, if any, ends as CANCELLED. */
  cancel(): void {
    this.#cancel();
  }

  close(): void {
    this.cancel();
    for (const agent of this.#agents.values()) agent.destroy();
  }

  #request(url: URL, length: number): http.ClientRequest {
    const { headers, socketPath } = {
      headers: this.#options.headers,
      socketPath: this.#options.http?.socketPath,
    };
    const proxy = socketPath === undefined ? proxyFor(url, this.#env) : undefined;
    const isTunnel = proxy !== undefined && url.protocol === 'https:';
    const all: Record<string, string | number> = {
      ...Object.fromEntries(headers),
      'content-type': CONTENT_TYPE,
      'content-length': length,
      host: url.host,
      ...(this.#isGzip && { 'content-encoding': 'gzip' }),
      ...(proxy && !isTunnel && credentialsOf(proxy)),
    };
    const options = {
      method: 'POST',
      headers: all,
      agent: this.#agent(url, proxy),
      ...(socketPath && { socketPath }),
    };
    if (proxy && !isTunnel) return http.request({ ...options, ...placeOf(proxy), path: url.href });
    const request = url.protocol === 'https:' ? https.request : http.request;
    return request({ ...options, ...placeOf(url), path: url.pathname + url.search });
  }

  #agent(url: URL, proxy: URL | undefined): http.Agent {
    const key = `${url.protocol} ${proxy?.href ?? ''}`;
    let agent = this.#agents.get(key);
    if (agent) return agent;
    const settings = { keepAlive: true, maxSockets: 1 };
    const { ca, cert, key: secret } = this.#options.tls ?? {};
    const secure = { ...settings, ...(ca && { ca }), ...(cert && { cert }), ...(secret && { key: secret }) };
    if (url.protocol === 'http:') agent = new http.Agent(settings);
    else agent = proxy ? new TunnelAgent(proxy, secure) : new https.Agent(secure);
    this.#agents.set(key, agent);
    return agent;
  }
}

const placeOf = (url: URL): { host: string; port: string } => ({
  host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
  port: url.port || (url.protocol === 'https:' ? '443' : '80'),
});

function credentialsOf({ username, password }: URL): Record<string, string> {
  if (username === '') return {};
  const pair = [username, password].map((text) => unescaped(text) ?? text).join(':');
  return { 'proxy-authorization': `Basic ${Buffer.from(pair).toString('base64')}` };
}

function collect(
  response: http.IncomingMessage,
  end: (answer: HttpAnswer) => void,
  fail: (error: Error) => void,
): void {
  const { statusCode: status = 0, headers } = response;
  const parts: Buffer[] = [];
  let bytes = 0;
  response.on('data', (part: Buffer) => {
    bytes += part.length;
    if (bytes <= MAX_ANSWER_BYTES) {
      parts.push(part);
      return;
    }
    // of a refusal the status says all: proxies explain theirs in long pages
    if (status >= 300) end({ status, headers, body: Buffer.concat(parts) });
    response.destroy(new Error(`the answer has more than ${MAX_ANSWER_BYTES} bytes`));
  });
  response.on('error', fail);
  response.on('end', () => end({ status, headers, body: Buffer.concat(parts) }));
}

/** TLS to the receiver itself, through what a proxy passes on (CONNECT). */
class TunnelAgent extends https.Agent {
  readonly #proxy: URL;
  /** Unanswered by the proxy. */
  readonly #connecting = new Set<http.ClientRequest>();

  constructor(proxy: URL, options: https.AgentOptions) {
    super(options);
    this.#proxy = proxy;
  }

  override createConnection(
    options: https.RequestOptions,
    done?: (error: Error | null, stream: Duplex) => void,
  ): undefined {
    const target = `${options.host?.includes(':') ? `[${options.host}]` : options.host}:${options.port}`;
    const headers = { host: target, ...credentialsOf(this.#proxy) };
    const connecting = http.request({
      ...placeOf(this.#proxy),
      ...{ method: 'CONNECT', path: target, headers, agent: false },
    });
    const fail = (error: Error): void => done?.(error, undefined as never);
    this.#connecting.add(connecting);
    connecting
      .on('close', () => this.#connecting.delete(connecting))
      .on('error', fail)
      .on('connect', ({ statusCode }, socket) => {
        if (statusCode === 200) done?.(null, tls.connect({ ...(options as tls.ConnectionOptions), socket }));
        else {
          socket.destroy();
          fail(
            new Error(`the proxy ${this.#proxy.host} refuses to connect to ${target}: HTTP ${statusCode}`),
          );
        }
      })
      .end();
    return undefined;
  }

  /** Closes the connections to a proxy that has not answered: nobody waits for it any more. */
  giveUp(): void {
    for (const connecting of this.#connecting) connecting.destroy();
  }
}
