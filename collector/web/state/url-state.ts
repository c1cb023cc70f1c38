import { parseLength } from '../../../common/base/length.ts';
import { formatDuration } from '../../../common/flame/format.ts';
import {
  type AttributeLabel,
  isAttributeLabel,
  isLinkLabel,
  type LinkLabel,
  labelOf,
} from '../../../common/profile/filters/filter.ts';
import { THREAD_STATE } from '../../../common/profile/model/thread-types.ts';
import type { TimeRange } from '../../store/store.ts';

/** Ranges that end now and are followed. */
export const RANGES = [
  { name: '60s', label: '1 min', title: 'the last minute' },
  { name: '5m', label: '5 min', title: 'the last 5 minutes' },
  { name: '15m', label: '15 min', title: 'the last 15 minutes' },
  { name: '1h', label: '1 h', title: 'the last hour' },
  { name: 'all', label: 'All', title: 'everything that is kept' },
] as const;

/** Of those, or another length that the API takes. */
export type RangeName = (typeof RANGES)[number]['name'] | (string & {});

const isRange = (text: string): boolean => text === 'all' || parseLength(text) !== undefined;

/** One length has one name: 1m is 60s. */
const rangeOf = (text: string): RangeName =>
  RANGES.find(({ name }) => name !== 'all' && parseLength(name) === parseLength(text))?.name ?? text;

/** In a sentence, such as `the last 5 minutes`. */
export const rangeTitle = (range: RangeName): string =>
  RANGES.find(({ name }) => name === range)?.title ??
  `the last ${formatDuration((parseLength(range) ?? 0) / 1000)}`;

export const GROUPINGS = ['process', 'service', 'container', 'thread', 'host', 'cpu', THREAD_STATE] as const;
/** Labels that not all samples have. */
export type FoundLabel = LinkLabel | AttributeLabel;
/** One of those, or what only some samples have. */
export type Grouping = (typeof GROUPINGS)[number] | FoundLabel;

export const VIEWS = [
  'icicle',
  'flame',
  'inverted',
  'top',
  'callers',
  'tree',
  'source',
  'time',
  'threads',
  'diff',
  'health',
] as const;
export type ViewName = (typeof VIEWS)[number];

/** What the colour of a box says. */
export const COLOURS = ['kind', 'library', 'difference'] as const;
export type Colour = (typeof COLOURS)[number];

/** What a link to the page keeps. */
export interface UrlState {
  /** Followed, unless `overview` is set. */
  range: RangeName;
  /** A fixed stretch of time on the timeline. */
  overview: TimeRange | undefined;
  /** The part of the overview that was brushed; everything but the timeline shows only that. */
  brush: TimeRange | undefined;
  /** What the timeline stacks. */
  by: Grouping;
  /** Type of the samples, as the API names it; '' for CPU samples, or for what there is where there are none. */
  type: string;
  /** Filter, as the API reads it. */
  where: string;
  /** Transforms of the stacks, as the API reads them. */
  transform: string;
  /** The function in the middle of callers and callees, '' for none. */
  function: string;
  /** The source file that is shown, as frames name it; '' for none. */
  file: string;
  /** Column that the top functions are sorted by, '' for the first. */
  sort: string;
  /** What the shown time is compared with; undefined: the time before. */
  base: TimeRange | undefined;
  /** Filter of that side, '' for none; undefined: the same. */
  baseWhere: string | undefined;
  /** Undefined: the view's own. */
  colour: Colour | undefined;
  search: string;
  /** Path key of the zoomed box, '' for the root. */
  zoom: string;
  view: ViewName;
}

export function parseHash(hash: string): UrlState {
  const parameters = new URLSearchParams(hash.replace(/^#/, ''));
  const read = (name: string): string => parameters.get(name) ?? '';
  const shown = readSpan(read('from'), read('to'));
  const overview = readSpan(read('over_from'), read('over_to')) ?? shown;
  const isPart = shown !== undefined && overview !== shown;
  return {
    range: isRange(read('range')) ? rangeOf(read('range')) : '60s',
    overview,
    brush: isPart ? shown : undefined,
    by: groupingOf(read('by')),
    type: read('type'),
    where: read('where'),
    transform: read('transform'),
    function: read('function'),
    file: read('file'),
    sort: read('sort'),
    base: readSpan(read('base_from'), read('base_to')),
    baseWhere: parameters.get('base_where') ?? undefined,
    colour: COLOURS.find((name) => name === read('colour')),
    search: read('search'),
    zoom: read('zoom'),
    view: oneOf(VIEWS, read('view')),
  };
}

const oneOf = <T extends string>(names: readonly T[], text: string): T =>
  names.find((name) => name === text) ?? names[0]!;

function groupingOf(text: string): Grouping {
  if (isLinkLabel(text)) return text;
  if (GROUPINGS.some((name) => name === text) || !/^@.|\../.test(text)) return oneOf(GROUPINGS, text);
  const label = labelOf(text);
  return isAttributeLabel(label) ? label : oneOf(GROUPINGS, label);
}

/** Milliseconds since the Unix epoch, or ISO 8601. */
function readSpan(from: string, to: string): TimeRange | undefined {
  const [fromMs, toMs] = [from, to].map((text) => (/^\d+$/.test(text) ? Number(text) : Date.parse(text)));
  return fromMs! < toMs! ? { fromMs: fromMs!, toMs: toMs! } : undefined;
}

/** Only what differs from the start, so that a fresh page has a bare address. */
export function formatHash(state: UrlState): string {
  const { overview, brush } = state;
  const shown = brush ?? overview;
  const entries: [name: string, value: string | undefined, fallback: string | undefined][] = [
    ['range', state.range, '60s'],
    ['from', text(shown?.fromMs), ''],
    ['to', text(shown?.toMs), ''],
    ['over_from', brush === undefined ? '' : text(overview?.fromMs), ''],
    ['over_to', brush === undefined ? '' : text(overview?.toMs), ''],
    ['by', state.by, GROUPINGS[0]],
    ['type', state.type, ''],
    ['where', state.where, ''],
    ['transform', state.transform, ''],
    ['function', state.function, ''],
    ['file', state.file, ''],
    ['sort', state.sort, ''],
    ['base_from', text(state.base?.fromMs), ''],
    ['base_to', text(state.base?.toMs), ''],
    // an empty one is a choice too: everything, whatever the other side's filter
    ['base_where', state.baseWhere, undefined],
    ['colour', state.colour ?? '', ''],
    ['search', state.search, ''],
    ['zoom', state.zoom, ''],
    ['view', state.view, VIEWS[0]],
  ];
  const parameters = new URLSearchParams();
  for (const [name, value, fallback] of entries)
    if (value !== undefined && value !== fallback) parameters.set(name, value);
  const all = parameters.toString();
  return all === '' ? '' : `#${all}`;
}

const text = (ms: number | undefined): string => (ms === undefined ? '' : String(Math.round(ms)));
