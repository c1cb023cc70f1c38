import { useEffect, useRef, useState } from 'preact/hooks';
import type { ErrorResponse } from '../../api/types.ts';
import { addressOf } from './page-address.ts';

const INTERVAL_MS = 2000;
/** Of the time between two answers, what takes to get one: a large picture is asked for less often. */
const MAX_BUSY = 0.1;
const TIMEOUT_MS = 30_000;

export interface Answer<T> {
  /** The last good answer, to whatever was asked last. */
  value: T | undefined;
  /** Why the last attempt failed. */
  error: string | undefined;
  /** The collector answered that it can't answer this. */
  isRefused: boolean;
  /** This browser's clock when the last answer came. */
  updatedMs: number | undefined;
  /** The value answers an earlier question. */
  isStale: boolean;
}

/** All that is on the page asks at the same moments, so that it is of the same time. */
function untilNext(tookMs: number): number {
  const intervals = Math.max(1, Math.ceil(tookMs / MAX_BUSY / INTERVAL_MS));
  return intervals * INTERVAL_MS - (Date.now() % INTERVAL_MS);
}

/**
 * Asks the collector for `path`, at once when it changes and then every 2 s while `isLive`, or as often as answers are quick; not
 * while the page is hidden. A question that failed is asked again. An undefined path asks nothing.
 */
export function useAnswer<T>(path: string | undefined, isLive: boolean): Answer<T> {
  const [data, setData] = useState<Answer<T> & { path: string | undefined }>({
    value: undefined,
    error: undefined,
    isRefused: false,
    updatedMs: undefined,
    isStale: false,
    path: undefined,
  });
  const asked = useRef<string>(undefined);
  useEffect(() => {
    // Of a fixed time one answer is enough.
    if (path === undefined || (!isLive && asked.current === path)) return;
    const controller = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isAsking = false;
    let isFailed = false;
    const ask = async (): Promise<void> => {
      isAsking = true;
      const startMs = performance.now();
      const answer = await attempt<T>(path, controller.signal);
      isAsking = false;
      if (controller.signal.aborted) return;
      asked.current = path;
      setData((known) => ({ ...known, ...answer, path }));
      isFailed = answer.error !== undefined;
      if ((isLive || isFailed) && !document.hidden) {
        timer = setTimeout(ask, untilNext(performance.now() - startMs));
      }
    };
    const onVisible = (): void => {
      clearTimeout(timer);
      if (!document.hidden && (isLive || asked.current !== path || isFailed) && !isAsking) void ask();
    };
    document.addEventListener('visibilitychange', onVisible);
    void ask();
    return () => {
      controller.abort();
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', onVisible);
    };
  }, [path, isLive]);
  return { ...data, isStale: data.path !== path };
}

class RefusedError extends Error {}

async function attempt<T>(path: string, signal: AbortSignal): Promise<Partial<Answer<T>>> {
  try {
    const value = await fetchJson<T>(path, signal);
    return { value, error: undefined, isRefused: false, updatedMs: Date.now() };
  } catch (error) {
    const isRefused = error instanceof RefusedError;
    return { error: error instanceof Error ? error.message : String(error), isRefused };
  }
}

async function fetchJson<T>(path: string, signal: AbortSignal): Promise<T> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
  const response = await fetch(addressOf(path), { signal: limit });
  if (response.ok) return response.json();
  const { error } = (await response.json().catch(() => ({ error: response.statusText }))) as ErrorResponse;
  throw new RefusedError(error);
}
