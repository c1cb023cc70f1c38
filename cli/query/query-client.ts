/** Asks a collector's query API. */
import type { IncomingMessage, RequestOptions } from 'node:http';
import { request as plainRequest } from 'node:http';
import { request as tlsRequest } from 'node:https';
import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import type { Command } from 'commander';
import { inWords } from '../../common/base/system-error.ts';
import { readCertificates, systemAuthorities } from '../../otlp-client/endpoint.ts';
import { readSettingFile } from '../../otlp-client/setting-file.ts';

/** As it is told; the flag's default has no scheme, so that --tls-ca may choose it. */
export const DEFAULT_URL = 'http://127.0.0.1:11080';
const DEFAULT_PLACE = '127.0.0.1:11080';
const TOKEN_VARIABLE = 'EVERYFRAME_TOKEN_FILE';
const TIMEOUT_MS = 60_000;
const MAX_TOKEN_BYTES = 1 << 20;
/** A debug file of a GiB takes its time. */
const SEND_TIMEOUT_MS = 10 * 60_000;

export type Query = Readonly<Record<string, string | number | undefined>>;

/** Which collector, and how it is asked: the flags of each command that does. */
export interface CollectorFlags {
  url: string;
  tlsCa?: string;
  tokenFile?: string;
}

export const addCollectorFlags = (command: Command): Command =>
  command
    .option('--url <URL>', 'the collector, as HOST:PORT or http(s)://HOST:PORT', DEFAULT_PLACE)
    .option(
      '--tls-ca <FILE>',
      "certificate authorities to trust instead of the system's; a --url without a scheme is then https",
    )
    .option(
      '--token-file <FILE>',
      `a file that holds the token that the collector wants (default: the one that ${TOKEN_VARIABLE} names)`,
    );

const toParameters = (query: Query): URLSearchParams => {
  const parameters = new URLSearchParams();
  for (const [key, value] of Object.entries(query))
    if (value !== undefined) parameters.set(key, String(value));
  return parameters;
};

/** @throws Error whose message says what to do: start a collector, correct the query */
export async function ask<T>(collector: CollectorFlags, path: string, query: Query): Promise<T> {
  return answerTo<T>(await request(collector, path, query));
}

/** @throws Error as {@link ask} */
export async function send<T>(
  collector: CollectorFlags,
  path: string,
  query: Query,
  body: Uint8Array | Readable,
): Promise<T> {
  return answerTo<T>(await request(collector, path, query, body));
}

/** @throws Error as {@link ask} */
export async function fetchFile(collector: CollectorFlags, path: string, query: Query): Promise<Uint8Array> {
  const answer = await request(collector, path, query);
  if (isGood(answer)) return answer.body;
  throw refused(answer);
}

/**
 * `http://HOST:PORT`, or `HOST:PORT` alone, which --tls-ca makes https.
 *
 * @throws Error for what is not an address
 */
export function collectorUrl({ url: text, tlsCa }: CollectorFlags): URL {
  const scheme = tlsCa === undefined ? 'http' : 'https';
  const whole = /^[a-z][a-z\d+.-]*:\/\//i.test(text) ? text : `${scheme}://${text}`;
  const url = URL.canParse(whole) ? new URL(whole) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.hostname === '')
    throw new Error(`--url is "${text}": write the address of a collector's page, such as ${DEFAULT_URL}`);
  if (tlsCa !== undefined && url.protocol === 'http:')
    throw new Error(
      `--tls-ca has no use for --url ${text}: write https://${url.host}, or leave --tls-ca out`,
    );
  return url;
}

/** Where the token of the collector's --token-file is, if one was named, and who named it. */
function tokenPlace({ tokenFile }: CollectorFlags): { path: string; namer: string } | undefined {
  if (tokenFile !== undefined) return { path: tokenFile, namer: '--token-file' };
  const path = process.env[TOKEN_VARIABLE];
  return path === undefined || path === '' ? undefined : { path, namer: TOKEN_VARIABLE };
}

function authorization(collector: CollectorFlags): Record<string, string> {
  const place = tokenPlace(collector);
  if (place === undefined) return {};
  const { path, namer } = place;
  try {
    return { authorization: `Bearer ${readSettingFile(path, MAX_TOKEN_BYTES).toString('utf8').trim()}` };
  } catch (error) {
    throw new Error(`can't read ${path}, which ${namer} names: ${inWords(error)}`);
  }
}

/** As the agent trusts; Node's own list where NODE_EXTRA_CA_CERTS adds to it. */
function authorities({ tlsCa }: CollectorFlags): Pick<import('node:tls').SecureContextOptions, 'ca'> {
  if (tlsCa !== undefined) return { ca: readCertificates(tlsCa, 'tls-ca') };
  const ca = process.env['NODE_EXTRA_CA_CERTS'] ? undefined : systemAuthorities(process.env);
  return ca === undefined ? {} : { ca };
}

interface Answer {
  collector: CollectorFlags;
  url: URL;
  status: number;
  body: Buffer;
}

async function request(
  collector: CollectorFlags,
  path: string,
  query: Query,
  body?: Uint8Array | Readable,
): Promise<Answer> {
  const url = new URL(`/api/v1/${path}?${toParameters(query)}`, collectorUrl(collector));
  const timeoutMs = body === undefined ? TIMEOUT_MS : SEND_TIMEOUT_MS;
  const options: RequestOptions = {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      'accept-encoding': 'gzip',
      ...(body !== undefined && { 'content-type': 'application/octet-stream' }),
      ...(body instanceof Uint8Array && { 'content-length': body.length }),
      ...authorization(collector),
    },
    signal: AbortSignal.timeout(timeoutMs),
    ...(url.protocol === 'https:' && authorities(collector)),
  };
  try {
    const response = await exchange(url, options, body);
    const bytes = await buffer(response);
    const isPacked = response.headers['content-encoding'] === 'gzip';
    return { collector, url, status: response.statusCode!, body: isPacked ? gunzipSync(bytes) : bytes };
  } catch (error) {
    if (options.signal!.aborted)
      throw new Error(`${url.origin} does not answer within ${timeoutMs / 1000} s: ask for less, or later`);
    throw explainUnanswered(url, error as Error);
  }
}

function exchange(
  url: URL,
  options: RequestOptions,
  body: Uint8Array | Readable | undefined,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const outgoing = (url.protocol === 'https:' ? tlsRequest : plainRequest)(url, options, resolve);
    // also of what is still sent where the answer came early: nobody waits for that
    outgoing.on('error', reject);
    if (body === undefined || body instanceof Uint8Array) outgoing.end(body);
    else body.on('error', (error) => outgoing.destroy(error)).pipe(outgoing);
  });
}

const isGood = ({ status }: Answer): boolean => status >= 200 && status < 300;

function answerTo<T>(answer: Answer): T {
  const value = parse(answer.body);
  if (isGood(answer) && value !== undefined) return value as T;
  throw refused(answer);
}

/** Undefined: not JSON. */
function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
}

function refused({ collector, url, status, body }: Answer): Error {
  if (status === UNAUTHORIZED) return new Error(explainToken(collector, url));
  const message = (parse(body) as { error?: unknown } | undefined)?.error;
  if (typeof message === 'string') return new Error(message);
  return new Error(
    `${url.origin} is not a collector's page (status ${status}): give --url the address that the collector prints, by default ${DEFAULT_URL}`,
  );
}

const UNAUTHORIZED = 401;

function explainToken(collector: CollectorFlags, url: URL): string {
  const place = tokenPlace(collector);
  return place === undefined
    ? `the collector at ${url.origin} wants a token: give --token-file FILE, a file that holds the token of the collector's --token-file, or of one of its --tenant`
    : `the collector at ${url.origin} has another token than ${place.path}, which ${place.namer} names`;
}

/** What OpenSSL and Node call a certificate that is not trusted, or not for this name or time. */
const BAD_CERTIFICATE = /CERT|UNABLE_TO_|_CA$/;
const BAD_NAME = 'ERR_TLS_CERT_ALTNAME_INVALID';

/** Why nobody answered, and what to do. */
export function explainUnanswered(url: URL, error: Error): Error {
  // of a name with several addresses, each of which was tried
  const cause = (error instanceof AggregateError ? (error.errors[0] as Error) : undefined) ?? error;
  const { code = '' } = cause as NodeJS.ErrnoException;
  if (code === BAD_NAME)
    return new Error(
      `the certificate of ${url.origin} is for other names (${cause.message}): give --url a name that it has`,
    );
  if (BAD_CERTIFICATE.test(code))
    return new Error(
      `the certificate of ${url.origin} is not trusted (${cause.message}): give --tls-ca FILE, a file with the certificate ` +
        'or its authority (PEM)',
    );
  if (url.protocol === 'https:' && (code.startsWith('ERR_SSL_') || code === 'EPROTO'))
    return new Error(`${url.origin} does not speak TLS: write http://${url.host}`);
  // a gRPC server begins with a frame of HTTP/2
  if (code.startsWith('HPE_') || code === 'ECONNRESET')
    return new Error(
      `${url.origin} does not speak HTTP/1: where it speaks TLS, write https://${url.host}; or is this the collector's gRPC port? ` +
        `Give --url the page's, by default ${DEFAULT_URL}`,
    );
  return new Error(
    `no collector answers at ${url.origin} (${cause.message}): start one with \`everyframe collector\`, or name another with --url`,
  );
}
