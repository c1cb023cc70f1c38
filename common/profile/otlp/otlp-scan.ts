/**
 * A first look at the bytes of an ExportProfilesServiceRequest, before objects are made of them.
 *
 * Two bytes of protobuf become an object of a hundred, and gzip makes a few kilobytes of millions of them: a limit
 * on a request's bytes does not limit what it costs. So what it would become is counted first, without allocating.
 * The same pass sees the layouts of opentelemetry-proto 1.9 and older by the wire types of renumbered fields.
 */

/** The bytes are not an OTLP profiles request that can be read; the message is for the sender's operator. */
export class OtlpError extends Error {
  override readonly name = 'OtlpError';
}

export const OLD_WIRE =
  'this request is in the layout of opentelemetry-proto 1.9 or older; version 1.10 or later is needed: update the sender';

/** Messages and 64-bit numbers of a list: each becomes an object. A real sample takes 16 bytes and more. */
const MAX_OBJECTS = 3_000_000;
/** Everything else that takes a word: strings and indices. */
const MAX_WORDS = 24_000_000;
/** Values of attributes may hold values. */
const MAX_DEPTH = 32;

/** What a length-delimited field holds: a message, or a packed list of 64-bit numbers. Others cost a word a byte. */
type Field = Schema | 'varint64' | 'fixed64';
interface Schema {
  [field: number]: Field;
  /** Fields whose wire type shows a layout older than 1.10: field → wire type. */
  old?: Readonly<Record<number, number>>;
  /** Fields that hold packed 32-bit indices. */
  indices?: ReadonlySet<number>;
}

const LEAF: Schema = {};
const anyValue: Schema = {};
const keyValue: Schema = { 2: anyValue };
anyValue[5] = { 1: anyValue };
anyValue[6] = { 1: keyValue };
const sample: Schema = {
  4: 'varint64',
  5: 'fixed64',
  // up to 1.9: attribute_indices (values in those before it) was 3, where link_index is now
  old: { 3: 2 },
  indices: new Set([2]),
};
const profile: Schema = {
  1: LEAF,
  2: sample,
  5: LEAF,
  // up to 1.6: location_indices was 3, where time_unix_nano is now
  old: { 3: 2 },
  indices: new Set([11]),
};
const resource: Schema = { 1: keyValue, 3: LEAF };
const scope: Schema = { 3: keyValue };
const resourceProfiles: Schema = { 1: resource, 2: { 1: scope, 2: profile } };
const dictionary: Schema = {
  1: { indices: new Set([5]) },
  2: { 3: LEAF, indices: new Set([4]) },
  3: LEAF,
  4: LEAF,
  6: { 2: anyValue },
  7: { indices: new Set([1]) },
};
const request: Schema = { 1: resourceProfiles, 2: dictionary };

/** @throws OtlpError for bytes that are not protobuf, for old layouts, and for what would cost too much */
export function scanRequest(bytes: Uint8Array): void {
  new Scanner(bytes).message(request, bytes.length, 0);
}

class Scanner {
  readonly #bytes: Uint8Array;
  #at = 0;
  #objects = 0;
  #words = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  message(schema: Schema, end: number, depth: number): void {
    if (depth > MAX_DEPTH) throw this.#bad(`messages nested deeper than ${MAX_DEPTH}`);
    while (this.#at < end) {
      const tag = this.#varint(end);
      const [field, wireType] = [tag >>> 3, tag & 7];
      if (field === 0) throw this.#bad('a field without a number');
      if (schema.old && schema.old[field] === wireType) throw new OtlpError(OLD_WIRE);
      this.#spend(0, 1);
      if (wireType === 0) this.#number(schema[field], end);
      else if (wireType === 1) this.#fixed(schema[field], 8, end);
      else if (wireType === 5) this.#fixed(schema[field], 4, end);
      else if (wireType === 2) this.#delimited(schema, field, end, depth);
      else throw this.#bad(`wire type ${wireType}`);
    }
  }

  #number(kind: Field | undefined, end: number): void {
    this.#varint(end);
    if (kind === 'varint64') this.#spend(1, 0);
  }

  #fixed(kind: Field | undefined, size: number, end: number): void {
    if (end - this.#at < size) throw this.#bad('an end in the middle of a number');
    this.#at += size;
    if (kind === 'fixed64') this.#spend(1, 0);
  }

  #delimited(schema: Schema, field: number, end: number, depth: number): void {
    const length = this.#varint(end);
    if (length > end - this.#at)
      throw this.#bad(`a field of ${length} bytes where ${end - this.#at} are left`);
    const next = this.#at + length;
    const kind = schema[field];
    if (typeof kind === 'object') {
      this.#spend(1, 0);
      this.message(kind, next, depth + 1);
    } else if (kind === 'fixed64') {
      this.#spend(length >>> 3, 0);
    } else if (kind === 'varint64') {
      this.#spend(this.#countVarints(next), 0);
    } else if (schema.indices?.has(field)) {
      this.#spend(0, this.#countVarints(next));
    }
    this.#at = next;
  }

  #countVarints(end: number): number {
    let count = 0;
    for (let i = this.#at; i < end; i++) if (this.#bytes[i]! < 0x80) count++;
    return count;
  }

  #spend(objects: number, words: number): void {
    this.#objects += objects;
    this.#words += words;
    if (this.#objects > MAX_OBJECTS || this.#words > MAX_WORDS) {
      throw new OtlpError(
        `this request of ${this.#bytes.length} bytes holds more than ${MAX_OBJECTS} messages or ${MAX_WORDS} indices: send smaller requests`,
      );
    }
  }

  /** The low 32 bits, which is all that tags and lengths have. */
  #varint(end: number): number {
    let value = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      if (this.#at >= end) throw this.#bad('an end in the middle of a number');
      const byte = this.#bytes[this.#at++]!;
      if (shift < 32) value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
    }
    throw this.#bad('a number of more than 10 bytes');
  }

  #bad(what: string): OtlpError {
    return new OtlpError(
      `these ${this.#bytes.length} bytes are not an OTLP profiles request of opentelemetry-proto 1.10 or later: ${what} at byte ${this.#at}`,
    );
  }
}
