/** Where the parts of an ExportProfilesServiceRequest lie in its bytes: nothing is read that no sample refers to. */
import { bytesTag, fixed64Tag, IntList, type ProtoReader, varintTag } from '../../protobuf/proto-reader.ts';

/** Fields of ProfilesDictionary. */
export const TABLE = {
  mapping: 1,
  location: 2,
  func: 3,
  link: 4,
  string: 5,
  attribute: 6,
  stack: 7,
} as const;
const TABLES = 8;

/** Starts and ends of messages, by index. */
export class Ranges {
  readonly #starts = new IntList();
  readonly #ends = new IntList();

  get length(): number {
    return this.#starts.length;
  }

  push(start: number, end: number): void {
    this.#starts.push(start);
    this.#ends.push(end);
  }

  /** Moves the reader there; the end, or -1 where there is no such entry. */
  open(reader: ProtoReader, index: number): number {
    if (!(index >= 0 && index < this.#starts.length)) return -1;
    reader.at = this.#starts.values[index]!;
    return this.#ends.values[index]!;
  }
}

export interface RequestLayout {
  /** Undefined: there is no dictionary. */
  tables: Ranges[] | undefined;
  resourceProfiles: Ranges;
}

/** @throws BadProtobuf */
export function layOut(reader: ProtoReader): RequestLayout {
  const layout: RequestLayout = { tables: undefined, resourceProfiles: new Ranges() };
  while (reader.at < reader.bytes.length) {
    const tag = reader.int32();
    if (tag === bytesTag(1)) pushRange(reader, layout.resourceProfiles);
    else if (tag === bytesTag(2)) {
      layout.tables ??= Array.from({ length: TABLES }, () => new Ranges());
      const end = reader.end();
      while (reader.at < end) {
        const inner = reader.int32();
        const table = layout.tables[inner >>> 3];
        if ((inner & 7) === 2 && table) pushRange(reader, table);
        else reader.skip(inner);
      }
    } else reader.skip(tag);
  }
  return layout;
}

/** The repeated messages of a field. @throws BadProtobuf */
export function rangesOf(reader: ProtoReader, end: number, field: number): Ranges {
  const ranges = new Ranges();
  while (reader.at < end) {
    const tag = reader.int32();
    if (tag === bytesTag(field)) pushRange(reader, ranges);
    else reader.skip(tag);
  }
  return ranges;
}

function pushRange(reader: ProtoReader, ranges: Ranges): void {
  const end = reader.end();
  ranges.push(reader.at, end);
  reader.at = end;
}

/** What a profile says besides its samples; types are pairs of indices of strings. */
export class ProfileHeader {
  timeUnixNano = 0n;
  durationNano = 0n;
  period = 0n;
  sampleType: [type: number, unit: number] | undefined;
  periodType: [type: number, unit: number] | undefined;
  readonly samples = new Ranges();
  /** Undefined: it has none, as nearly all. */
  attributes: IntList | undefined;
}

/** @throws BadProtobuf */
export function readProfileHeader(reader: ProtoReader, end: number): ProfileHeader {
  const header = new ProfileHeader();
  while (reader.at < end) {
    const tag = reader.int32();
    if (tag === bytesTag(1)) header.sampleType = readValueType(reader);
    else if (tag === bytesTag(2)) pushRange(reader, header.samples);
    else if (tag === fixed64Tag(3)) header.timeUnixNano = reader.fixed64();
    else if (tag === varintTag(4)) header.durationNano = reader.bigint();
    else if (tag === bytesTag(5)) header.periodType = readValueType(reader);
    else if (tag === varintTag(6)) header.period = reader.bigint();
    else if (tag === bytesTag(11)) attributesOf(header).pushPacked(reader);
    else if (tag === varintTag(11)) attributesOf(header).push(reader.int32());
    else reader.skip(tag);
  }
  return header;
}

function attributesOf(header: ProfileHeader): IntList {
  header.attributes ??= new IntList();
  return header.attributes;
}

function readValueType(reader: ProtoReader): [type: number, unit: number] {
  const end = reader.end();
  let [type, unit] = [0, 0];
  while (reader.at < end) {
    const tag = reader.int32();
    if (tag === varintTag(1)) type = reader.int32();
    else if (tag === varintTag(2)) unit = reader.int32();
    else reader.skip(tag);
  }
  return [type, unit];
}

/** A Sample as it stands there; read into one object again and again. */
export class WireSample {
  stack = 0;
  link = 0;
  readonly attributes = new IntList();
  values: number[] = [];
  timestamps: bigint[] = [];

  /** @throws BadProtobuf */
  read(reader: ProtoReader, end: number): void {
    this.stack = 0;
    this.link = 0;
    this.attributes.length = 0;
    if (this.values.length > 0) this.values = [];
    this.timestamps = [];
    while (reader.at < end) {
      const tag = reader.int32();
      if (tag === varintTag(1)) this.stack = reader.int32();
      else if (tag === bytesTag(2)) this.attributes.pushPacked(reader);
      else if (tag === varintTag(2)) this.attributes.push(reader.int32());
      else if (tag === varintTag(3)) this.link = reader.int32();
      else if (tag === bytesTag(4)) this.#readValues(reader);
      else if (tag === varintTag(4)) this.values.push(reader.number());
      else if (tag === bytesTag(5)) this.#readTimestamps(reader);
      else if (tag === fixed64Tag(5)) this.timestamps.push(reader.fixed64());
      else reader.skip(tag);
    }
  }

  #readValues(reader: ProtoReader): void {
    const end = reader.end();
    while (reader.at < end) this.values.push(reader.number());
  }

  #readTimestamps(reader: ProtoReader): void {
    const end = reader.end();
    const count = (end - reader.at) >>> 3;
    // exactly as large as needed, where they come in one piece as nearly always
    const read = new Array<bigint>(count);
    for (let i = 0; i < count; i++) read[i] = reader.fixed64();
    reader.at = end;
    this.timestamps = this.timestamps.length === 0 ? read : this.timestamps.concat(read);
  }
}

/** Lines of a location as they stand there; read into one object again and again. */
export class WireLines {
  length = 0;
  readonly functions: number[] = [];
  readonly numbers: number[] = [];
  readonly columns: number[] = [];

  /** One more. @throws BadProtobuf */
  read(reader: ProtoReader, end: number): void {
    let [func, line, column] = [0, 0, 0];
    while (reader.at < end) {
      const tag = reader.int32();
      if (tag === varintTag(1)) func = reader.int32();
      else if (tag === varintTag(2)) line = reader.number();
      else if (tag === varintTag(3)) column = reader.number();
      else reader.skip(tag);
    }
    const at = this.length++;
    this.functions[at] = func;
    this.numbers[at] = line;
    this.columns[at] = column;
  }
}
