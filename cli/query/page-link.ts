import { collectorUrl, type Query } from './query-client.ts';

/** Milliseconds since the Unix epoch. */
interface Span {
  fromMs: number;
  toMs: number;
}

/** What an answer stands on: one window, or two that were compared. */
export type Answered = Span | { now: Span; base: Span };

/** Where the page shows what an answer stands on: its times, so that the link still says the same tomorrow. */
export function pageLink(url: string, query: Query, answered: Answered): string {
  const link = new URL('/', collectorUrl(url));
  const { type, where, base_where: baseWhere, function: name } = query;
  const isCompared = 'base' in answered;
  const { fromMs, toMs } = isCompared ? answered.now : answered;
  const state = new URLSearchParams({ from: text(fromMs), to: text(toMs) });
  if (type !== undefined) state.set('type', String(type));
  if (where !== undefined) state.set('where', String(where));
  if (isCompared) {
    state.set('base_from', text(answered.base.fromMs));
    state.set('base_to', text(answered.base.toMs));
    if (baseWhere !== undefined) state.set('base_where', String(baseWhere));
    state.set('view', 'diff');
  } else if (name !== undefined) {
    state.set('view', 'callers');
    state.set('function', String(name));
  }
  link.hash = state.toString();
  return link.href;
}

const text = (ms: number): string => String(Math.round(ms));
