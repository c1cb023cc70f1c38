/** What the page asks of the API for a state of its own. */
import {
  isAttributeLabel,
  isLabelOfProgram,
  type Matcher,
  titleOfAttribute,
} from '../../../common/profile/filters/filter.ts';
import type { TimeRange } from '../../store/store.ts';
import type { UrlState } from './url-state.ts';

type Asked = Pick<UrlState, 'range' | 'overview' | 'brush' | 'where' | 'type'>;
/**
 * Boxes of a picture: nearly all of a minute or of five, so that it is whole; what is beyond comes by zooming. Measured: 134,000
 * boxes are 2.9 MB, 0.9 MB gzipped, and 20 ms to parse.
 */
export const MAX_BOXES = 300_000;

type Parameters = Record<string, string | number | undefined>;

/** A path below the page with what is asked and filtered by; empty and undefined parameters are left out. */
function pathOf(query: string, parameters: Parameters): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== '') search.set(name, String(value));
  }
  return `api/v1/${query}?${search}`;
}

/** All of the timeline. */
function overviewTime({ range, overview }: Asked): Parameters {
  if (overview === undefined) return { range, align: 1 };
  return { from: Math.round(overview.fromMs), to: Math.round(overview.toMs) };
}

/** What is brushed, or else all of it. */
function shownTime(state: Asked): Parameters {
  return overviewTime({ ...state, overview: state.brush ?? state.overview });
}

/** A query about what is shown. */
export const ask = (query: string, state: Asked, parameters: Parameters = {}): string =>
  pathOf(query, { ...shownTime(state), where: state.where, type: state.type, ...parameters });

/** A query about the whole timeline. */
export const askOverview = (query: string, state: Asked, parameters: Parameters = {}): string =>
  pathOf(query, { ...overviewTime(state), where: state.where, type: state.type, ...parameters });

/** What types of samples there are in the whole timeline, of those that the filter wants. */
export const askTypes = (state: Asked): string =>
  pathOf('types', { ...overviewTime(state), where: state.where });

/** A query about a stretch of time. */
export const askSpan = (query: string, span: TimeRange, parameters: Parameters): string =>
  pathOf(query, { from: Math.round(span.fromMs), to: Math.round(span.toMs), ...parameters });

/** True while the shown time ends now. */
export const isFollowing = (state: Asked): boolean => state.overview === undefined;

/** A filter as text that the API reads. */
export function formatFilter(terms: readonly Matcher[]): string {
  return terms
    .map(({ key, operator, values }) => quoteKey(key) + operator + values.map(quote).join())
    .join(' ');
}

/** Labels of programs may have any name; where it is plain they have a short key. */
function quoteKey(key: string): string {
  const short = isAttributeLabel(key) && isLabelOfProgram(key) ? titleOfAttribute(key) : key;
  if (/^@?[\w./-]+$/.test(short)) return short;
  return `@"${escaped(key.slice(1))}"`;
}

const escaped = (text: string): string => text.replace(/["\\]/g, '\\$&');

/** Quotes hold what would end a value. */
const quote = (value: string): string => (/^[^\s",]+$/.test(value) ? value : `"${escaped(value)}"`);
