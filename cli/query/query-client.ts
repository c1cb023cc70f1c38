/** Asks a collector's query API. */
import { readSettingFile } from '../../otlp-client/setting-file.ts';

export const DEFAULT_URL = 'http://127.0.0.1:11080';
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
 * @throws Error for what is no address
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

async function answerTo<T>(url: URL, init: RequestInit, timeoutMs = TIMEOUT_MS): Promise<T> {
  const headers = { ...(init.headers as Record<string, string>), ...authorization() };
  let response: Response;
  try {
    response = await fetch(url, { ...init, headers, signal: AbortSignal.timeout(timeoutMs) });
  } catch (error) {
    throw unanswered(url, error as Error);
  }
  const body: unknown = await response.json().catch(() => undefined);
  if (response.ok && body !== undefined) return body as T;
  const message = (body as { error?: unknown } | undefined)?.error;
  if (typeof message === 'string') throw new Error(message);
  throw new Error(
    `${url.origin} is not a collector's page (status ${response.status}): give --url the address that the collector prints, by default ${DEFAULT_URL}`,
  );
}

function unanswered(url: URL, error: Error): Error {
  const cause = error.cause instanceof Error ? error.cause : error;
  const { code = '' } = cause as NodeJS.ErrnoException;
  // a gRPC server begins with a frame of HTTP/2
  if (code.startsWith('HPE_') || code === 'UND_ERR_SOCKET')
    return new Error(
      `${url.origin} does not speak HTTP/1: is this the collector's gRPC port? Give --url the page's, by default ${DEFAULT_URL}`,
    );
  return new Error(
    `no collector answers at ${url.origin} (${cause.message}): start one with \`everyframe collector\`, or name another with --url`,
  );
}
