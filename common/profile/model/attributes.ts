/**
 * What senders say of samples beyond what everyframe has a place for, such as `deployment.environment` or `k8s.pod.name`:
 * as one text, so that equal sets are told by comparing texts.
 */

/** What is kept of one set. Longer keys are left out, longer values cut, and so are attributes beyond the number. */
const MAX_ATTRIBUTES = 64;
const MAX_KEY = 128;
const MAX_VALUE = 256;
/** Sets that were read of late. */
const MAX_CACHED = 4096;

/** Keys in order and their values in turn, as a JSON list; '' for none. Of a key that comes twice the last value counts. */
export function attributesText(attributes: Iterable<readonly [key: string, value: string]>): string {
  const values = new Map<string, string>();
  for (const [key, value] of attributes)
    if (key !== '' && key.length <= MAX_KEY && value !== '') values.set(key, cut(value));
  if (values.size === 0) return '';
  const keys = [...values.keys()].sort().slice(0, MAX_ATTRIBUTES);
  return JSON.stringify(keys.flatMap((key) => [key, values.get(key)!]));
}

/** The first set and the second one, of which a value counts where both have the key; '' for none. */
export const joinAttributes = (first: string, second: string): string =>
  attributesText([...readAttributes(first), ...readAttributes(second)]);

/** Never in the middle of a character. */
function cut(value: string): string {
  if (value.length <= MAX_VALUE) return value;
  return `${value.slice(0, MAX_VALUE - 1).replace(/[\uD800-\uDBFF]$/, '')}…`;
}

const known = new Map<string, ReadonlyMap<string, string>>();
const NONE: ReadonlyMap<string, string> = new Map();

/** Of a text that `attributesText` made. */
export function readAttributes(text: string): ReadonlyMap<string, string> {
  if (text === '') return NONE;
  let attributes = known.get(text);
  if (attributes === undefined) {
    const list = JSON.parse(text) as string[];
    const pairs = new Map<string, string>();
    for (let i = 0; i + 1 < list.length; i += 2) pairs.set(list[i]!, list[i + 1]!);
    if (known.size >= MAX_CACHED) known.clear();
    known.set(text, pairs);
    attributes = pairs;
  }
  return attributes;
}
