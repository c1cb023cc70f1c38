/** What the JSON formats share: typed access to values of unknown shape, and what this product adds to them. */
import type { Profile } from './profile.ts';
import type { ValueType } from './profile-type.ts';

export type Json = Record<string, unknown>;

export const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const object = (value: unknown): Json => (isObject(value) ? value : {});
export const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
export const text = (value: unknown): string => (typeof value === 'string' ? value : '');

/** A whole number of 0 or more, else 0. */
export const natural = (value: unknown): number => {
  const number = Number(value);
  return Number.isSafeInteger(number) && number > 0 ? number : 0;
};

/** @throws Error where an index leads out of its table */
export function at<T>(table: readonly T[], index: unknown, what: string): T {
  const entry = table[Number(index)];
  if (entry === undefined) throw new Error(`${what} ${index} is not among the ${table.length} that it has`);
  return entry;
}

/** What other readers ignore: without it samples would be times only, and the window would be lost. */
export function ownHeader(profile: Profile): Json {
  const { timeUnixNano, durationNano, host } = profile;
  const { sampleType, periodType, period } = profile.type;
  return {
    version: 1,
    ...{ timeUnixNano: `${timeUnixNano}`, durationNano: `${durationNano}`, period: `${period}` },
    ...{ sampleType, periodType, host },
  };
}

/** @returns whether the file is this product's own, so that its values are in the measure of the profile's type */
export function readOwnHeader(profile: Profile, value: unknown): boolean {
  if (!isObject(value) || value['version'] !== 1) return false;
  profile.timeUnixNano = bigint(value['timeUnixNano']);
  profile.durationNano = bigint(value['durationNano']);
  profile.type = {
    sampleType: valueType(value['sampleType']),
    periodType: valueType(value['periodType']),
    period: bigint(value['period']),
  };
  for (const [key, entry] of Object.entries(object(value['host']))) profile.host[key] = text(entry);
  return true;
}

const bigint = (value: unknown): bigint => (/^\d{1,19}$/.test(text(value)) ? BigInt(text(value)) : 0n);

const valueType = (value: unknown): ValueType => {
  const { type, unit } = object(value);
  return { type: text(type), unit: text(unit) };
};

export const toBytes = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));

/** V8 has no longer strings. */
const MAX_TEXT = 2 ** 29 - 24;

/** A list may lack its last bracket: programs that write Chrome's events until they end leave it out. */
function withItsEnd(text: string): string {
  const body = text.trimEnd();
  return /^\s*\[/.test(text) && !body.endsWith(']') ? `${body.replace(/,$/, '')}]` : text;
}

/** @throws Error for what is not a JSON object or array */
export function parseJson(bytes: Uint8Array): unknown {
  if (bytes.length > MAX_TEXT)
    throw new Error(
      `it has ${bytes.length} bytes, and JSON is read up to ${MAX_TEXT}: use a .pb.gz of the same profile`,
    );
  const value: unknown = JSON.parse(withItsEnd(new TextDecoder().decode(bytes)));
  if (typeof value !== 'object' || value === null) throw new Error('it does not hold a JSON object');
  return value;
}
