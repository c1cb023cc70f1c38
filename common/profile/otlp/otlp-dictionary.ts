/** The dictionary of an OTLP request: strings and attributes by index, in both forms that attributes come in. */

import { bytesTag, fixed64Tag, IntList, type ProtoReader, varintTag } from '../../protobuf/proto-reader.ts';
import { isFrameType } from '../model/frame-types.ts';
import { type FrameType, FUNCTION_START, GENERATED_PLACE } from '../model/profile.ts';
import type { StringCache } from '../model/string-cache.ts';
import { type Ranges, TABLE } from './otlp-request.ts';

type Value = string | number;
export type Attributes = ReadonlyMap<string, Value>;

/** A sample can't be kept; the message is the reason that it is counted under. */
export class BadSample extends Error {}

export const text = (attributes: Attributes, key: string): string => String(attributes.get(key) ?? '');
export const number = (attributes: Attributes, key: string): number => toInteger(attributes.get(key) ?? 0);

const toInteger = (value: Value): number => {
  const integer = Number(value);
  return Number.isSafeInteger(integer) ? integer : 0;
};

/** Keys of what mappings and locations are described by: no sample has them. */
const isPlaceKey = (key: string): boolean =>
  key === 'profile.frame.type' || key.startsWith('process.executable.build_id.');

/** What the attributes of a location say. */
export interface Place {
  type: FrameType;
  generated: string;
  /** 0: not known. */
  functionStart: number;
}

/** What an attribute of a sample says. */
export const ROLE = { unknown: 0, process: 1, tid: 2, threadName: 3, cpu: 4 } as const;
const ROLES: Readonly<Record<string, number>> = {
  'thread.id': ROLE.tid,
  'thread.name': ROLE.threadName,
  'cpu.logical_number': ROLE.cpu,
};
const [ODD, USUAL] = [1, 2];
/** Tags of the key's text and of its index in the table of strings; the value is field 2 of both. */
const KEY_VALUE = { text: bytesTag(1), index: varintTag(3) };
const KEY_VALUE_AND_UNIT = { text: -1, index: varintTag(1) };
const DOUBLE_VALUE = fixed64Tag(4);
/** Attributes of a profile that are looked at: each of many profiles may have very many. */
const MAX_OF_PROFILE = 64;
const UNKNOWN_PLACE: Place = { type: '', generated: '', functionStart: 0 };

export class DictionaryReader {
  readonly reader: ProtoReader;
  readonly #tables: readonly Ranges[];
  readonly #cache: StringCache;
  /** By string: id of its text and 1. */
  readonly #strings: Int32Array;
  readonly #attributes: (readonly [string, Value] | undefined)[] = [];
  /** By attribute: one of ROLE; ODD or USUAL. */
  readonly #roles: Uint8Array;
  readonly #oddities: Uint8Array;
  /** By attribute, of locations that have only that one: nearly all have. */
  readonly #places: (Place | undefined)[] = [];
  readonly #indices = new IntList();

  constructor(reader: ProtoReader, tables: readonly Ranges[], cache: StringCache) {
    this.reader = reader;
    this.#tables = tables;
    this.#cache = cache;
    this.#strings = new Int32Array(this.count('string'));
    const attributes = this.count('attribute');
    this.#roles = new Uint8Array(attributes);
    this.#oddities = new Uint8Array(attributes);
  }

  count(table: keyof typeof TABLE): number {
    return this.#tables[TABLE[table]]!.length;
  }

  /** Moves the reader to an entry; its end, or -1 where there is none. */
  open(table: keyof typeof TABLE, index: number): number {
    return this.#tables[TABLE[table]]!.open(this.reader, index);
  }

  /** @throws BadSample for an index outside of the table; 0 is '' even where the sender left out the table */
  string(index: number): string {
    return this.#cache.string(this.stringId(index));
  }

  /** Id of a string's text. @throws BadSample as {@link string} */
  stringId(index: number): number {
    const known = this.#strings[index];
    if (known !== undefined && known !== 0) return known - 1;
    const { at } = this.reader;
    const end = this.open('string', index);
    if (end < 0 && index === 0) return 0;
    if (end < 0) throw new BadSample('string index out of range');
    const found = this.#cache.idOf(this.reader.bytes, this.reader.at, end);
    this.reader.at = at;
    this.#strings[index] = found + 1;
    return found;
  }

  /** Attributes with key and value in place. One that can't be read is left out: it costs no sample. */
  keyValues(pairs: Ranges): Attributes {
    const found = new Map<string, Value>();
    for (let i = 0; i < pairs.length; i++) {
      try {
        found.set(...this.#pair(pairs.open(this.reader, i), KEY_VALUE));
      } catch (error) {
        if (!(error instanceof BadSample)) throw error;
      }
    }
    return found;
  }

  /** @throws BadSample */
  attributes(indices: Iterable<number>): Attributes {
    const found = new Map<string, Value>();
    for (const index of indices) found.set(...this.#attribute(index));
    return found;
  }

  /** Of the first attributes of a profile, a text: '' where none is one of that key. What can't be read is passed over. */
  textOf({ values, length }: IntList, key: string): string {
    for (let i = 0; i < Math.min(length, MAX_OF_PROFILE); i++) {
      try {
        const [found, value] = this.#attribute(values[i]!);
        if (found === key && typeof value === 'string') return value;
      } catch (error) {
        if (!(error instanceof BadSample)) throw error;
      }
    }
    return '';
  }

  /** @throws BadSample */
  place(indices: IntList): Place {
    if (indices.length === 0) return UNKNOWN_PLACE;
    if (indices.length > 1) return toPlace(this.attributes(indices.view()));
    const index = indices.values[0]!;
    const known = this.#places[index];
    if (known) return known;
    const place = toPlace(this.attributes(indices.view()));
    this.#places[index] = place;
    return place;
  }

  /** One of ROLE. @throws BadSample */
  roleOf(index: number): number {
    const known = this.#roles[index];
    if (known) return known;
    const role = ROLES[this.#attribute(index)[0]] ?? ROLE.process;
    this.#roles[index] = role;
    return role;
  }

  /** The value of an attribute, 0 where it is none. @throws BadSample */
  integer(index: number): number {
    return toInteger(this.#attribute(index)[1]);
  }

  /** The value of an attribute. @throws BadSample */
  value(index: number): string {
    return String(this.#attribute(index)[1]);
  }

  /** True for attributes that no sender means: the zero entry, and those of mappings and locations. */
  isOddForSample(index: number): boolean {
    const known = this.#oddities[index];
    if (known === undefined) return true;
    if (known !== 0) return known === ODD;
    let key = '';
    try {
      [key] = this.#attribute(index);
    } catch (error) {
      if (!(error instanceof BadSample)) throw error;
    }
    const isOdd = key === '' || isPlaceKey(key);
    this.#oddities[index] = isOdd ? ODD : USUAL;
    return isOdd;
  }

  /** Reads a list of indices that is asked for at once. */
  indices(): IntList {
    this.#indices.length = 0;
    return this.#indices;
  }

  #attribute(index: number): readonly [string, Value] {
    const known = this.#attributes[index];
    if (known) return known;
    const { at } = this.reader;
    const end = this.open('attribute', index);
    if (end < 0) throw new BadSample('attribute index out of range');
    const pair = this.#pair(end, KEY_VALUE_AND_UNIT);
    this.reader.at = at;
    this.#attributes[index] = pair;
    return pair;
  }

  /** Of a KeyValue or a KeyValueAndUnit, to its end. */
  #pair(end: number, { text, index }: { text: number; index: number }): readonly [string, Value] {
    const { reader } = this;
    let [key, keyIndex] = ['', 0];
    let value: Value = '';
    while (reader.at < end) {
      const tag = reader.int32();
      if (tag === text) key = this.#text();
      else if (tag === bytesTag(2)) value = this.#value(reader.end());
      else if (tag === index) keyIndex = reader.int32();
      else reader.skip(tag);
    }
    return [key || this.string(keyIndex), value];
  }

  /** Of an AnyValue, to its end. */
  #value(end: number): Value {
    const { reader } = this;
    let [words, index, isTrue, double] = ['', 0, false, 0];
    let integer: number | undefined;
    while (reader.at < end) {
      const tag = reader.int32();
      if (tag === bytesTag(1)) words = this.#text();
      else if (tag === varintTag(2)) isTrue = reader.int32() !== 0;
      else if (tag === varintTag(3)) integer = reader.number();
      else if (tag === DOUBLE_VALUE) double = reader.double();
      else if (tag === varintTag(8)) index = reader.int32();
      else reader.skip(tag);
    }
    if (index !== 0) return this.string(index);
    return words || (integer ?? (double || (isTrue ? 'true' : '')));
  }

  #text(): string {
    const { reader } = this;
    const end = reader.end();
    const found = this.#cache.read(reader.bytes, reader.at, end);
    reader.at = end;
    return found;
  }
}

function toPlace(attributes: Attributes): Place {
  const type = text(attributes, 'profile.frame.type');
  return {
    type: isFrameType(type) ? type : '',
    generated: text(attributes, GENERATED_PLACE),
    functionStart: Math.max(0, number(attributes, FUNCTION_START)),
  };
}
