/**
 * What a process says of itself: OpenTelemetry's process context (OTEP 4719). An SDK publishes its resource, as protobuf, in
 * memory that is named `OTEL_CTX`:
 *
 *   0 signature "OTEL_CTX" · 8 version u32 · 12 bytes of payload u32 · 16 time of publishing u64, 0 while it changes ·
 *   24 address of the payload u64, in the process
 *
 * Numbers are in the processor's order. The time says whether what was read is whole, and new.
 */
import type { Pid } from '../../common/base/brand.ts';
import { bytesTag, fixed64Tag, ProtoReader, varintTag } from '../../common/protobuf/proto-reader.ts';
import type { ForeignFiles } from './foreign-files.ts';

export interface ProcessContext {
  /** Where it is published. */
  address: number;
  /** CLOCK_BOOTTIME, nanoseconds. */
  publishedNs: bigint;
  /** Attributes of the resource; none of what is not text, number or truth value. */
  resource: ReadonlyMap<string, string>;
  /** Attributes of the context itself, which readers need and nobody else; lists have texts alone. */
  attributes: ReadonlyMap<string, ContextValue>;
}

export type ContextValue = string | readonly string[];

/** It is not as the specification has it. */
export class BadContext extends Error {}

const SIGNATURE = 'OTEL_CTX';
const VERSION = 2;
const HEADER_BYTES = 32;
const MAX_PAYLOAD_BYTES = 64 << 10;
const MAX_ATTRIBUTES = 256;
/** It may be changed while it is read. */
const MAX_TRIES = 3;
const MAX_MAPS_BYTES = 16 << 20;
/** A name of memory that no file backs, or of memfd_create(); the last one with ` (deleted)` behind it. */
const MAPPING =
  /^([0-9a-f]+)-[0-9a-f]+ r.-. .* (?:\[anon(?:_shmem)?:OTEL_CTX\]|\/memfd:OTEL_CTX(?: \(deleted\))?)$/m;

/** The address of its context; undefined where it has none, is gone, or does not answer. */
export async function findContext(pid: Pid, files: ForeignFiles): Promise<number | undefined> {
  const bytes = await files.readProcFile(pid, 'maps', MAX_MAPS_BYTES);
  // most have none, and lists of mappings are long
  if (typeof bytes === 'number' || !bytes.includes(SIGNATURE)) return undefined;
  const start = MAPPING.exec(bytes.toString('latin1'))?.[1];
  return start === undefined ? undefined : Number.parseInt(start, 16);
}

/** Undefined where it is gone, is being changed, or is no later than `afterNs`. Throws {@link BadContext}. */
export async function readContext(
  pid: Pid,
  address: number,
  files: ForeignFiles,
  afterNs = 0n,
): Promise<ProcessContext | undefined> {
  const session = files.newSession();
  const read = async (from: number, length: number): Promise<Buffer | undefined> => {
    const bytes = await files.readMemory(pid, from, length, session);
    return typeof bytes === 'number' || bytes.length < length ? undefined : bytes;
  };
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const before = await read(address, HEADER_BYTES);
    if (!before) return undefined;
    const { publishedNs, payloadBytes, payload } = parseHeader(before);
    if (publishedNs === 0n) continue;
    if (publishedNs <= afterNs) return undefined;
    const bytes = await read(payload, payloadBytes);
    const after = await read(address, HEADER_BYTES);
    if (bytes && after?.equals(before)) return { address, publishedNs, ...parsePayload(bytes) };
  }
  return undefined;
}

function parseHeader(header: Buffer): { payloadBytes: number; publishedNs: bigint; payload: number } {
  const payloadBytes = header.readUInt32LE(12);
  if (header.toString('latin1', 0, 8) !== SIGNATURE) throw new BadContext('no signature');
  if (header.readUInt32LE(8) !== VERSION) throw new BadContext(`version ${header.readUInt32LE(8)}`);
  const payload = Number(header.readBigUInt64LE(24));
  if (!Number.isSafeInteger(payload)) throw new BadContext(`a payload at ${payload}`);
  if (payloadBytes === 0 || payloadBytes > MAX_PAYLOAD_BYTES) throw new BadContext(`${payloadBytes} bytes`);
  return { payloadBytes, publishedNs: header.readBigUInt64LE(16), payload };
}

/** ProcessContext {1 resource {1 attributes}, 2 attributes}. */
function parsePayload(bytes: Buffer): Pick<ProcessContext, 'resource' | 'attributes'> {
  const resource = new Map<string, string>();
  const attributes = new Map<string, ContextValue>();
  try {
    const reader = new ProtoReader(bytes);
    eachMessage(reader, bytes.length, {
      1: (end) =>
        eachMessage(reader, end, {
          1: (end) => {
            const [key, value] = parseAttribute(reader, end);
            if (typeof value === 'string') put(resource, key, value);
          },
        }),
      2: (end) => put(attributes, ...parseAttribute(reader, end)),
    });
  } catch (error) {
    throw new BadContext(String(error));
  }
  return { resource, attributes };
}

function put<V extends ContextValue>(into: Map<string, V>, key: string, value: V): void {
  if (key !== '' && value.length > 0 && into.size < MAX_ATTRIBUTES) into.set(key, value);
}

/** Calls of `takers` that of the field for each of its messages, with its end. */
function eachMessage(
  reader: ProtoReader,
  end: number,
  takers: Readonly<Record<number, (end: number) => void>>,
): void {
  while (reader.at < end) {
    const tag = reader.int32();
    const take = (tag & 7) === 2 ? takers[tag >>> 3] : undefined;
    if (take) take(within(reader.end(), end));
    else reader.skip(tag);
  }
}

/** KeyValue {1 key, 2 AnyValue {1 text, 2 truth value, 3 integer, 4 double, 5 list {1 AnyValue}}}. */
function parseAttribute(reader: ProtoReader, end: number): [key: string, value: ContextValue] {
  let key = '';
  let value: ContextValue = '';
  while (reader.at < end) {
    const tag = reader.int32();
    if (tag === bytesTag(1)) key = text(reader, end);
    else if (tag === bytesTag(2)) value = parseValue(reader, within(reader.end(), end));
    else reader.skip(tag);
  }
  return [key, value];
}

function parseValue(reader: ProtoReader, end: number, isInList = false): ContextValue {
  let value: ContextValue = '';
  while (reader.at < end) {
    const tag = reader.int32();
    if (tag === bytesTag(1)) value = text(reader, end);
    else if (tag === varintTag(2)) value = String(reader.int32() !== 0);
    else if (tag === varintTag(3)) value = String(BigInt.asIntN(64, reader.bigint()));
    else if (tag === fixed64Tag(4)) value = String(reader.double());
    else if (tag === bytesTag(5) && !isInList) value = parseList(reader, within(reader.end(), end));
    else reader.skip(tag);
  }
  return value;
}

/** By position: what is not text, number or truth value is ''. */
function parseList(reader: ProtoReader, end: number): string[] {
  const values: string[] = [];
  eachMessage(reader, end, {
    1: (end) => {
      const value = parseValue(reader, end, true);
      if (typeof value === 'string' && values.length < MAX_ATTRIBUTES) values.push(value);
    },
  });
  return values;
}

function text(reader: ProtoReader, limit: number): string {
  const [end, start] = [within(reader.end(), limit), reader.at];
  reader.at = end;
  return reader.bytes.toString('utf8', start, end);
}

function within(end: number, limit: number): number {
  if (end > limit) throw new BadContext('a field ends behind what holds it');
  return end;
}
