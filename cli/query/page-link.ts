import { type CollectorFlags, collectorUrl, type Query } from './query-client.ts';

/** Milliseconds since the Unix epoch. */
interface Span {
  fromMs: number;
  toMs: number;
}

/** What an answer stands on: one window, or two that were compared. */
export type Answered = Span | { now: Span; base: Span };

/** What the address of the page has under the API's names. */
const SHARED = ['type', 'where', 'transform', 'by', 'function'];

/** By the API's path; others are answered by what is above the views, or by the first of them. */
const VIEWS: Readonly<Record<string, string>> = {
  top: 'top',
  callers: 'callers',
  diff: 'diff',
  health: 'health',
};

/** Where the page shows what an answer stands on: its times, so that the link still says the same tomorrow. */
export function pageLink(collector: CollectorFlags, path: string, query: Query, answered: Answered): string {
  const link = new URL('/', collectorUrl(collector));
  const { base_where: baseWhere } = query;
  const isCompared = 'base' in answered;
  const { fromMs, toMs } = isCompared ? answered.now : answered;
  const state = new URLSearchParams({ from: text(fromMs), to: text(toMs) });
  for (const name of SHARED) if (query[name] !== undefined) state.set(name, String(query[name]));
  if (isCompared) {
    state.set('base_from', text(answered.base.fromMs));
    state.set('base_to', text(answered.base.toMs));
    if (baseWhere !== undefined) state.set('base_where', String(baseWhere));
  }
  const view = VIEWS[path];
  if (view !== undefined) state.set('view', view);
  link.hash = state.toString();
  return link.href;
}

const text = (ms: number): string => String(Math.round(ms));
