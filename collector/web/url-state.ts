import type { RangeName } from '../query/queries.ts';

export type ViewName = 'graph' | 'tree';

/** What a link to the page keeps. */
export interface UrlState {
  range: RangeName;
  process: string | undefined;
  search: string;
  /** Path key of the zoomed box, '' for the root. */
  zoom: string;
  view: ViewName;
}

export const RANGES: readonly { name: RangeName; label: string; title: string }[] = [
  { name: '60s', label: '1 min', title: 'the last minute' },
  { name: '5m', label: '5 min', title: 'the last 5 minutes' },
  { name: '15m', label: '15 min', title: 'the last 15 minutes' },
  { name: 'all', label: 'All', title: 'everything that is kept' },
];

export function parseHash(hash: string): UrlState {
  const parameters = new URLSearchParams(hash.replace(/^#/, ''));
  const range = RANGES.find(({ name }) => name === parameters.get('range'))?.name ?? '60s';
  return {
    range,
    process: parameters.get('process') ?? undefined,
    search: parameters.get('search') ?? '',
    zoom: parameters.get('zoom') ?? '',
    view: parameters.get('view') === 'tree' ? 'tree' : 'graph',
  };
}

/** Only what differs from the start, so that a fresh page has a bare address. */
export function formatHash(state: UrlState): string {
  const parameters = new URLSearchParams();
  if (state.range !== '60s') parameters.set('range', state.range);
  if (state.process !== undefined) parameters.set('process', state.process);
  if (state.search !== '') parameters.set('search', state.search);
  if (state.zoom !== '') parameters.set('zoom', state.zoom);
  if (state.view !== 'graph') parameters.set('view', state.view);
  const text = parameters.toString();
  return text === '' ? '' : `#${text}`;
}
