/** Asks a collector's query API. */

export const DEFAULT_URL = 'http://127.0.0.1:11080';
const TIMEOUT_MS = 60_000;

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
export async function send<T>(baseUrl: string, path: string, query: Query, bytes: Buffer): Promise<T> {
  return answerTo<T>(new URL(`/api/v1/${path}?${toParameters(query)}`, baseUrl), {
    method: 'POST',
    body: new Uint8Array(bytes),
    headers: { 'content-type': 'application/octet-stream' },
  });
}

async function answerTo<T>(url: URL, init: RequestInit): Promise<T> {
  let response: Response;
  try {
    response = await fetch(url, { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) });
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
