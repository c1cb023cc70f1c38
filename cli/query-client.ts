/** Asks a collector's query API. */
import { readFileSync } from 'node:fs';

export const DEFAULT_URL = 'http://127.0.0.1:11080';
const TIMEOUT_MS = 60_000;
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
  return answerTo<T>(new URL(`/api/v1/${path}?${toParameters(query)}`, baseUrl), {});
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
  return answerTo<T>(new URL(`/api/v1/${path}?${toParameters(query)}`, baseUrl), init, SEND_TIMEOUT_MS);
}

/** The collector's --token-file, where it has one. */
function authorization(): Record<string, string> {
  const path = process.env['EVERYFRAME_TOKEN_FILE'];
  if (path === undefined || path === '') return {};
  try {
    return { authorization: `Bearer ${readFileSync(path, 'utf8').trim()}` };
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
    const cause = (error as Error).cause;
    const why = cause instanceof Error ? cause.message : (error as Error).message;
    throw new Error(
      `no collector answers at ${url.origin} (${why}): start one with \`everyframe collector\`, or name another with --url`,
    );
  }
  const body: unknown = await response.json().catch(() => ({ error: `status ${response.status}` }));
  if (!response.ok) throw new Error((body as { error: string }).error);
  return body as T;
}
