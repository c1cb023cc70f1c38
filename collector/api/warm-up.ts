/**
 * What the page asks first, asked once before: V8 compiles what answers, and DuckDB reads the names of functions, while nobody
 * waits. It stands back for whoever asks meanwhile.
 */
import type { Store } from '../store/store.ts';
import { type ApiContext, ROUTES } from './v1.ts';

const HOUR_MS = 3_600_000;
/** Newest hours that are read; at least one is complete if a collector ran for some time. */
const HOURS = 3;
const MAX_PARTS = 2;

const QUESTIONS: readonly [path: string, parameters: Record<string, string>][] = [
  ['/api/v1/tree', {}],
  ['/api/v1/timeline', { by: 'process' }],
  ['/api/v1/values', { label: 'process' }],
];

/** @param isWanted false once it is to end */
export async function warmUp(context: ApiContext, isWanted: () => boolean): Promise<void> {
  const { newestMs } = context.store.stats();
  if (newestMs === undefined) return;
  const from = (Math.floor(newestMs / HOUR_MS) - HOURS + 1) * HOUR_MS;
  const times = { from: String(from), to: String(newestMs + 1) };
  for (const [path, parameters] of QUESTIONS) {
    if (!isWanted()) return;
    const store = someOf(context.store, isWanted);
    await ROUTES[path]!.run(new URLSearchParams({ ...times, ...parameters }), { ...context, store });
  }
}

/** Only parts that were summed: the others would take seconds. */
function someOf(
  store: ApiContext['store'],
  isWanted: () => boolean,
): Pick<Store, 'parts' | 'stats' | 'types'> {
  return {
    stats: () => store.stats(),
    types: (range) => store.types(range),
    parts: async (range) =>
      isWanted()
        ? (await store.parts(range)).filter((part) => part.summed?.(range) !== undefined).slice(-MAX_PARTS)
        : [],
  };
}
