/** Reads the query strings of the API. */

import { parseLength } from '../../common/base/length.ts';
import { parseZoom } from '../../common/flame/path-key.ts';
import { parseFilter } from '../../common/profile/filters/filter.ts';
import { parseTransforms } from '../../common/profile/filters/transform-list.ts';
import type { Wanted } from '../query/draw-tree.ts';
import type { PruneLimits } from '../query/flame/boxes.ts';
import { DEFAULT_LIMITS } from '../query/flame/flame-tree.ts';
import type { SampleFilter, Store, TimeRange } from '../store/store.ts';

export type Parameters = Pick<URLSearchParams, 'get'>;

/** A request that can't be answered as it is; the message says what to change. */
export class RequestError extends Error {
  override name = 'RequestError';
}

const DEFAULT_RANGE = '15m';
/** Steps of an aligned range. */
const ALIGN_STEPS = 120;

/**
 * `from` and `to`, or `range`, and `where`; with a prefix such as `base_` each under that name. `align=1` widens a
 * range that ends now to whole steps: a live picture then moves by whole steps, without flicker.
 *
 * @throws RequestError
 * @throws FilterError
 */
export function readRange(
  parameters: Parameters,
  store: Pick<Store, 'stats'>,
  now: () => number,
  prefix = '',
): SampleFilter {
  const read = (name: string): string | undefined => parameters.get(prefix + name) ?? undefined;
  const nowMs = now();
  const where = parseFilter(read('where') ?? '');
  const to = read('to');
  const from = read('from');
  if (from !== undefined && read('range') !== undefined)
    throw new RequestError(`${prefix}from and ${prefix}range contradict each other: give one of them`);
  if (from === undefined && read('range') === 'all') {
    const { oldestMs = nowMs - 60_000, newestMs = nowMs } = store.stats();
    if (read('align') === '1') return { ...alignAll(oldestMs, Math.max(nowMs, newestMs) + 1), where };
    return { fromMs: oldestMs, toMs: Math.max(newestMs, oldestMs) + 1, where };
  }
  const toMs = to === undefined ? nowMs + 1 : readTime(`${prefix}to`, to, nowMs);
  const fromMs =
    from === undefined
      ? toMs - readDuration(`${prefix}range`, read('range') ?? DEFAULT_RANGE)
      : readTime(`${prefix}from`, from, nowMs);
  if (!(fromMs < toMs))
    throw new RequestError(`${prefix}from (${from}) must be before ${prefix}to (${to ?? 'now'})`);
  const isAligned = read('align') === '1' && from === undefined && to === undefined;
  return { ...(isAligned ? alignEnd(fromMs, toMs) : { fromMs, toMs }), where };
}

function alignEnd(fromMs: number, toMs: number): TimeRange {
  const stepMs = (toMs - fromMs) / ALIGN_STEPS;
  const endMs = Math.ceil(toMs / stepMs) * stepMs;
  return { fromMs: endMs - (toMs - fromMs), toMs: endMs };
}

function alignAll(oldestMs: number, endMs: number): TimeRange {
  // The next multiple of 0.5 s: a minute or less has the steps of the last minute.
  const stepMs = Math.ceil((endMs - oldestMs) / (ALIGN_STEPS - 1) / 500) * 500;
  const toMs = Math.ceil(endMs / stepMs) * stepMs;
  return { fromMs: toMs - stepMs * ALIGN_STEPS, toMs };
}

/**
 * `now`, `-5m`, milliseconds since the Unix epoch, or ISO 8601.
 *
 * @throws RequestError
 */
export function readTime(name: string, text: string, nowMs: number): number {
  if (text === 'now') return nowMs + 1;
  if (text.startsWith('-')) return nowMs - readDuration(name, text.slice(1));
  const ms = /^\d+$/.test(text) ? Number(text) : Date.parse(text);
  if (!Number.isSafeInteger(ms)) {
    throw new RequestError(
      `${name} is "${text}": write now, -5m, milliseconds since 1970, or 2026-01-31T12:00:00Z`,
    );
  }
  return ms;
}

function readDuration(name: string, text: string): number {
  const ms = parseLength(text);
  if (ms === undefined)
    throw new RequestError(`${name} is "${text}": write a time such as 60s, 15m, 6h or 7d, or all`);
  return ms;
}

export function readInteger(
  parameters: Parameters,
  name: string,
  { fallback, min, max }: { fallback: number; min: number; max: number },
): number {
  const text = parameters.get(name);
  if (text === null) return fallback;
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= min && value <= max)) {
    throw new RequestError(`${name} is "${text}": write a whole number from ${min} to ${max}`);
  }
  return value;
}

/** More boxes than a page can hold with ease. */
const MAX_NODES = 400_000;
const MAX_WHOLE = 10_000;

/**
 * What is asked of a tree: `transform`, `limit`, and `zoom`.
 *
 * @throws RequestError
 * @throws FilterError
 */
export function readWanted(parameters: Parameters): Wanted {
  const { maxNodes: fallback } = DEFAULT_LIMITS;
  const maxNodes = readInteger(parameters, 'limit', { fallback, min: 1, max: MAX_NODES });
  // Whoever asks for more boxes means small ones.
  const minFraction = Math.min(DEFAULT_LIMITS.minFraction, 1 / maxNodes);
  return {
    transforms: parseTransforms(parameters.get('transform') ?? ''),
    limits: { minFraction, maxNodes, zoom: readZoom(parameters, 'zoom') },
  };
}

/**
 * What is asked of one of two trees: `limit`, and what is looked at in it by `name`.
 *
 * @throws RequestError
 */
export function readLimits(parameters: Parameters, name: string, fallback: number): PruneLimits {
  const maxNodes = readInteger(parameters, 'limit', { fallback, min: 1, max: MAX_NODES });
  // A few boxes are wanted whatever their share; of many nobody sees those that are narrower than a hair.
  const minFraction = maxNodes <= MAX_WHOLE ? 0 : Math.min(DEFAULT_LIMITS.minFraction, 1 / maxNodes);
  return { minFraction, maxNodes, zoom: readZoom(parameters, name) };
}

function readZoom(parameters: Parameters, name: string): PruneLimits['zoom'] {
  const text = parameters.get(name) ?? '';
  const zoom = text === '' ? undefined : parseZoom(text);
  if (text !== '' && zoom === undefined)
    throw new RequestError(`${name} is "${text}": write the key of a box, as the page's address has it`);
  return zoom;
}
