/** The dictionary of an OTLP request: strings and attributes by index, in both forms that attributes come in. */
import type { opentelemetry } from '#otlp';
import { type FrameType, GENERATED_PLACE } from './profile.ts';

type Dictionary = opentelemetry.proto.profiles.v1development.IProfilesDictionary;
type AnyValue = opentelemetry.proto.common.v1.IAnyValue;
type KeyValue = opentelemetry.proto.common.v1.IKeyValue;
/** A 64-bit field: Long in what was decoded; numbers elsewhere. */
export type Integer = { low: number; high: number } | number | null | undefined;
type Value = string | number;
export type Attributes = ReadonlyMap<string, Value>;

/** A sample can't be kept; the message is the reason that it is counted under. */
export class BadSample extends Error {}

/** Numbers are exact up to 2^53, which is all that counts and identifiers here need. */
export function toNumber(value: Integer): number {
  if (value === null || value === undefined) return 0;
  return typeof value === 'number' ? value : value.high * 2 ** 32 + (value.low >>> 0);
}

/** The 64 bits without a sign. */
export function toBigint(value: Integer): bigint {
  if (value === null || value === undefined) return 0n;
  if (typeof value === 'number') return BigInt.asUintN(64, BigInt(Math.trunc(value)));
  const [high, low] = [value.high >>> 0, value.low >>> 0];
  // below 2^53 a number holds it, and needs one BigInt instead of four
  return high < 2 ** 21 ? BigInt(high * 2 ** 32 + low) : (BigInt(high) << 32n) | BigInt(low);
}

export const text = (attributes: Attributes, key: string): string => String(attributes.get(key) ?? '');
export const number = (attributes: Attributes, key: string): number => {
  const value = Number(attributes.get(key) ?? 0);
  return Number.isSafeInteger(value) ? value : 0;
};

/** Keys of what mappings and locations are described by: no sample has them. */
const isPlaceKey = (key: string): boolean =>
  key === 'profile.frame.type' || key.startsWith('process.executable.build_id.');

const FRAME_TYPES: ReadonlySet<string> = new Set<FrameType>([
  'native',
  'kernel',
  'go',
  'cpython',
  'jvm',
  'ruby',
  'perl',
  'php',
  'phpjit',
  'v8js',
  'dotnet',
  'beam',
  'luajit',
  'abort-marker',
]);

/** What the attributes of a location say. */
export interface Place {
  type: FrameType;
  generated: string;
}

/** Attributes that differ between samples of a process. */
const THREAD_KEYS: ReadonlySet<string> = new Set(['thread.id', 'thread.name', 'cpu.logical_number']);
const UNKNOWN_PLACE: Place = { type: '', generated: '' };

export class DictionaryReader {
  readonly tables: Dictionary;
  readonly #attributes: (readonly [string, Value] | undefined)[] = [];
  /** By attribute, of locations that have only that one: nearly all have. */
  readonly #places: (Place | undefined)[] = [];

  constructor(tables: Dictionary) {
    this.tables = tables;
  }

  /** @throws BadSample for an index outside of the table; 0 is '' even where the sender left out the table */
  string(index: number | null | undefined): string {
    const found = this.tables.stringTable?.[index ?? 0];
    if (found !== undefined) return found;
    if (!index) return '';
    throw new BadSample('string index out of range');
  }

  /** Attributes with key and value in place. One that can't be read is left out: it costs no sample. */
  keyValues(pairs: readonly KeyValue[]): Attributes {
    const found = new Map<string, Value>();
    for (const { key, keyStrindex, value } of pairs) {
      try {
        found.set(key || this.string(keyStrindex), this.#value(value));
      } catch (error) {
        if (!(error instanceof BadSample)) throw error;
      }
    }
    return found;
  }

  /** @throws BadSample */
  attributes(indices: readonly number[] | null | undefined): Attributes {
    const found = new Map<string, Value>();
    for (const index of indices ?? []) {
      const [key, value] = this.#attribute(index);
      found.set(key, value);
    }
    return found;
  }

  /** @throws BadSample */
  place(indices: readonly number[] | null | undefined): Place {
    if (!indices?.length) return UNKNOWN_PLACE;
    if (indices.length > 1) return toPlace(this.attributes(indices));
    const [index = 0] = indices;
    const known = this.#places[index];
    if (known) return known;
    const place = toPlace(this.attributes(indices));
    this.#places[index] = place;
    return place;
  }

  /** @throws BadSample */
  isOfThread(index: number): boolean {
    return THREAD_KEYS.has(this.#attribute(index)[0]);
  }

  /** True for attributes that no sender means: the zero entry, and those of mappings and locations. */
  isOddForSample(index: number): boolean {
    const entry = this.tables.attributeTable?.[index];
    if (!entry) return true;
    const key = this.tables.stringTable?.[entry.keyStrindex ?? 0] ?? '';
    return key === '' || isPlaceKey(key);
  }

  #attribute(index: number): readonly [string, Value] {
    const known = this.#attributes[index];
    if (known) return known;
    const entry = this.tables.attributeTable?.[index];
    if (!entry) throw new BadSample('attribute index out of range');
    const pair = [this.string(entry.keyStrindex), this.#value(entry.value)] as const;
    this.#attributes[index] = pair;
    return pair;
  }

  #value(value: AnyValue | null | undefined): Value {
    if (!value) return '';
    if (value.stringValueStrindex) return this.string(value.stringValueStrindex);
    if (value.stringValue) return value.stringValue;
    if (value.intValue !== null && value.intValue !== undefined) return toNumber(value.intValue);
    return value.doubleValue || (value.boolValue ? 'true' : '');
  }
}

function toPlace(attributes: Attributes): Place {
  const type = text(attributes, 'profile.frame.type');
  return {
    type: FRAME_TYPES.has(type) ? (type as FrameType) : '',
    generated: text(attributes, GENERATED_PLACE),
  };
}
