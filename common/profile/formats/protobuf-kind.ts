/** Which of the two formats that are protobuf a file without a name is. Any such message decodes as any other: their fields differ. */
import { BadProtobuf, ProtoReader } from '../../protobuf/proto-reader.ts';

const [VARINT, DELIMITED] = [0, 2];
const NUMBERS = 'one number or a list of them';
/** What a field may be written as: a wire type, or a message of such fields. */
type Shape = { readonly [field: number]: number | typeof NUMBERS | Shape };

const messages = (last: number): Shape =>
  Object.fromEntries(Array.from({ length: last }, (_, i) => [i + 1, DELIMITED]));
const numbers = (first: number, last: number): Shape =>
  Object.fromEntries(Array.from({ length: last - first + 1 }, (_, i) => [first + i, VARINT]));

/** Up to the fields that may be added: profiles by resource, and a dictionary of tables. */
const OTLP: Shape = { 1: messages(15), 2: messages(15) };
const VALUE_TYPE: Shape = numbers(1, 2);
/** What samples are, samples, tables, and what the file as a whole is. */
const PPROF: Shape = { ...messages(6), ...numbers(7, 15), 1: VALUE_TYPE, 11: VALUE_TYPE, 13: NUMBERS };

/** @param start the beginning of a file, which may end anywhere */
export function protobufKind(start: Uint8Array): 'otlp' | 'pprof' | undefined {
  if (isText(start)) return undefined;
  if (hasShape(start, OTLP)) return 'otlp';
  return hasShape(start, PPROF) ? 'pprof' : undefined;
}

/** Without control characters but those between words and lines. Numbers and lengths of messages are such. */
const isText = (bytes: Uint8Array): boolean =>
  !bytes.some((byte) => byte < 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0d);

/** The longest number. */
const MAX_VARINT = 10;

function hasShape(start: Uint8Array, shape: Shape): boolean {
  const reader = new ProtoReader(start);
  try {
    return hasFields(reader, Number.POSITIVE_INFINITY, shape);
  } catch (error) {
    if (!(error instanceof BadProtobuf)) throw error;
    return reader.at > start.length - MAX_VARINT;
  }
}

/** As far as there are bytes. @throws BadProtobuf */
function hasFields(reader: ProtoReader, end: number, shape: Shape): boolean {
  while (reader.at < Math.min(end, reader.bytes.length)) {
    const tag = reader.int32();
    const kind = shape[tag >>> 3];
    const wireType = tag & 7;
    if (kind === undefined || !isWritten(kind, wireType)) return false;
    const number = reader.int32() >>> 0;
    if (wireType === VARINT) continue;
    const next = reader.at + number;
    if (next > end || (typeof kind === 'object' && !hasFields(reader, next, kind))) return false;
    reader.at = next;
  }
  return true;
}

function isWritten(kind: Shape[number], wireType: number): boolean {
  if (kind === NUMBERS) return wireType === VARINT || wireType === DELIMITED;
  return wireType === (typeof kind === 'object' ? DELIMITED : kind);
}
