import { useEffect, useRef, useState } from 'preact/hooks';
import type { ErrorResponse, FlameGraphResponse, ProcessesResponse, StatusResponse } from '../api/types.ts';
import type { RangeName } from '../query/queries.ts';
import { buildModel, type FlameModel } from './flame-model.ts';

const INTERVAL_MS = 2000;
const TIMEOUT_MS = 15_000;

export interface LiveData {
  model: FlameModel | undefined;
  processes: ProcessesResponse | undefined;
  status: StatusResponse | undefined;
  /** Why the last attempt failed. */
  error: string | undefined;
  /** This browser's clock when the last answer came. */
  updatedMs: number | undefined;
}

const NOTHING: LiveData = {
  model: undefined,
  processes: undefined,
  status: undefined,
  error: undefined,
  updatedMs: undefined,
};

/** Asks the collector every 2 s, and at once when the question changes; not while paused or hidden. */
export function useLiveData(range: RangeName, process: string | undefined, paused: boolean): LiveData {
  const [data, setData] = useState(NOTHING);
  const asked = useRef('');
  useEffect(() => {
    const question = `${range} ${process}`;
    // Paused: a new question is answered once, so that the picture fits the buttons.
    if (paused && asked.current === question) return;
    const controller = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isAsking = false;
    const ask = async (): Promise<void> => {
      isAsking = true;
      const answer = await fetchAll(range, process, controller.signal);
      isAsking = false;
      if (controller.signal.aborted) return;
      asked.current = question;
      setData((known) => ({ ...known, ...answer }));
      if (!paused && !document.hidden) timer = setTimeout(ask, INTERVAL_MS);
    };
    const onVisible = (): void => {
      clearTimeout(timer);
      if (!document.hidden && !paused && !isAsking) void ask();
    };
    document.addEventListener('visibilitychange', onVisible);
    void ask();
    return () => {
      controller.abort();
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', onVisible);
    };
  }, [range, process, paused]);
  return data;
}

async function fetchAll(
  range: RangeName,
  process: string | undefined,
  signal: AbortSignal,
): Promise<Partial<LiveData>> {
  const filter = process === undefined ? '' : `&process=${encodeURIComponent(process)}`;
  try {
    const [graph, processes, status] = await Promise.all([
      fetchJson<FlameGraphResponse>(`api/flamegraph?range=${range}${filter}`, signal),
      fetchJson<ProcessesResponse>(`api/processes?range=${range}`, signal),
      fetchJson<StatusResponse>('api/status', signal),
    ]);
    return { model: buildModel(graph), processes, status, error: undefined, updatedMs: Date.now() };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

async function fetchJson<T>(path: string, signal: AbortSignal): Promise<T> {
  const response = await fetch(path, { signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]) });
  if (response.ok) return response.json();
  const { error } = (await response.json().catch(() => ({ error: response.statusText }))) as ErrorResponse;
  throw new Error(error);
}
