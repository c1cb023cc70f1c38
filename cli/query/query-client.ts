/** Asks a collector's query API. */
import { readSettingFile } from '../../otlp-client/setting-file.ts';

export const DEFAULT_URL = 'http://127.0.0.1:11080';
/** Of the flag of each command that asks. */
export const URL_HELP =
  'the collector, as HOST:PORT or http(s)://HOST:PORT; where it wants a token, EVERYFRAME_TOKEN_FILE names its file, and ' +
  'NODE_EXTRA_CA_CERTS a certificate to trust';
const TIMEOUT_MS = 60_000;
const MAX_TOKEN_BYTES = 1 << 20;
/** A debug file of a GiB takes its time. */
const SEND_TIMEOUT_MS = 10 * 60_000;

export type Query = Readonly<Record<string, string | number | undefined>>;

const toParameters = (query: Query): URLSearchParams => {
  const parameters = new URLSearchParams();
  for (const [key, value] of Object.entries(query))
    if (value !== undefined) parameters.set(key, String(value));
  return parameters;
};

/** @throws Error whose message says what to do: start a collector, correct the query */
export async function ask<T>(baseUrl: string, path: string, query: Query): Promise<T> {
  return answerTo<T>(apiUrl(baseUrl, path, query), {});
}

/** @throws Error as {@link ask} */
export async function send<T>(
  baseUrl: string,
  path: string,
  query: Query,
  body: Uint8Array<ArrayBuffer> | ReadableStream,
): Promise<T> {
  const init: RequestInit = {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/octet-stream' },
    // what fetch wants of a body whose length it does not know
    ...(body instanceof ReadableStream && { duplex: 'half' as const }),
  };
  return answerTo<T>(apiUrl(baseUrl, path, query), init, SEND_TIMEOUT_MS);
}

const apiUrl = (baseUrl: string, path: string, query: Query): URL =>
  new URL(`/api/v1/${path}?${toParameters(query)}`, collectorUrl(baseUrl));

/**
 * `http://HOST:PORT`, or `HOST:PORT` alone.
 *
 * @throws Error for what is not an address
 */
export function collectorUrl(text: string): URL {
  const whole = /^[a-z][a-z\d+.-]*:\/\//i.test(text) ? text : `http://${text}`;
  const url = URL.canParse(whole) ? new URL(whole) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.hostname === '')
    throw new Error(`--url is "${text}": write the address of a collector's page, such as ${DEFAULT_URL}`);
  return url;
}

/** The collector's --token-file, where it has one. */
function authorization(): Record<string, string> {
  const path = process.env['EVERYFRAME_TOKEN_FILE'];
  if (path === undefined || path === '') return {};
  try {
    return { authorization: `Bearer ${readSettingFile(path, MAX_TOKEN_BYTES).toString('utf8').trim()}` };
  } catch (error) {
    throw new Error(`can't read ${path}, which EVERYFRAME_TOKEN_FILE names: ${(error as Error).message}`);
  }
}

async function request(url: URL, init: RequestInit, timeoutMs = TIMEOUT_MS): Promise<Response> {
  const headers = { ...(init.headers as Record<string, string>), ...authorization() };
  try {
    return await fetch(url, { ...init, headers, signal: AbortSignal.timeout(timeoutMs) });
  } catch (error) {
    throw explainUnanswered(url, error as Error);
  }
}

async function answerTo<T>(url: URL, init: RequestInit, timeoutMs?: number): Promise<T> {
  const response = await request(url, init, timeoutMs);
  const body: unknown = await response.json().catch(() => undefined);
  if (response.ok && body !== undefined) return body as T;
  throw refused(url, response.status, body);
}

/** @throws Error as {@link ask} */
export async function fetchFile(baseUrl: string, path: string, query: Query): Promise<Uint8Array> {
  const url = apiUrl(baseUrl, path, query);
  const response = await request(url, {});
  if (response.ok) return new Uint8Array(await response.arrayBuffer());
  throw refused(url, response.status, await response.json().catch(() => undefined));
}

function refused(url: URL, status: number, body: unknown): Error {
  if (status === UNAUTHORIZED) return new Error(explainToken(url));
  const message = (body as { error?: unknown } | undefined)?.error;
  if (typeof message === 'string') return new Error(message);
  return new Error(
    `${url.origin} is not a collector's page (status ${status}): give --url the address that the collector prints, by default ${DEFAULT_URL}`,
  );
}

const UNAUTHORIZED = 401;

function explainToken(url: URL): string {
  const path = process.env['EVERYFRAME_TOKEN_FILE'];
  return path === undefined || path === ''
    ? `the collector at ${url.origin} wants a token: set EVERYFRAME_TOKEN_FILE=FILE, a file that holds the same as its --token-file`
    : `the collector at ${url.origin} has another token than ${path}, which EVERYFRAME_TOKEN_FILE names`;
}

/** What OpenSSL and Node call a certificate that is not trusted, or not for this name or time. */
const BAD_CERTIFICATE = /CERT|UNABLE_TO_|_CA$/;

/** Why nobody answered, and what to do. */
export function explainUnanswered(url: URL, error: Error): Error {
  const cause = error.cause instanceof Error ? error.cause : error;
  const { code = '' } = cause as NodeJS.ErrnoException;
  if (BAD_CERTIFICATE.test(code))
    return new Error(
      `the certificate of ${url.origin} is not trusted (${cause.message}): set NODE_EXTRA_CA_CERTS=FILE, a file with the certificate ` +
        'or its authority (PEM), and ask by a name that the certificate has',
    );
  if (url.protocol === 'https:' && (code.startsWith('ERR_SSL_') || code === 'EPROTO'))
    return new Error(`${url.origin} does not speak TLS: write http://${url.host}`);
  // a gRPC server begins with a frame of HTTP/2
  if (code.startsWith('HPE_') || code === 'UND_ERR_SOCKET' || code === 'ECONNRESET')
    return new Error(
      `${url.origin} does not speak HTTP/1: where it speaks TLS, write https://${url.host}; or is this the collector's gRPC port? ` +
        `Give --url the page's, by default ${DEFAULT_URL}`,
    );
  return new Error(
    `no collector answers at ${url.origin} (${cause.message}): start one with \`everyframe collector\`, or name another with --url`,
  );
}
