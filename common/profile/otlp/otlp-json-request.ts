/**
 * A request in OTLP's JSON and in protobuf. Bytes are base64 in JSON, but for the IDs of traces and spans, which are hex digits:
 * https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
 */
import { opentelemetry } from '#otlp';
import { isObject } from '../model/json.ts';

const ExportRequest = opentelemetry.proto.collector.profiles.v1development.ExportProfilesServiceRequest;

const IDS = ['traceId', 'spanId'];
/** Digits of either; what is base64 of as many bytes is shorter or longer. */
const HEX_ID = /^(?:[0-9a-f]{16}|[0-9a-f]{32})$/i;

/** @throws Error for what is not a request */
export function jsonToProtobuf(value: object): Uint8Array {
  const readId = (id: unknown): unknown =>
    typeof id === 'string' && HEX_ID.test(id) ? Buffer.from(id, 'hex') : id;
  return ExportRequest.encode(ExportRequest.fromObject(withIds(value, readId))).finish();
}

/** Plain objects, 64-bit numbers as text. */
export function protobufToJson(bytes: Uint8Array): object {
  const plain = ExportRequest.toObject(ExportRequest.decode(bytes), {
    ...{ longs: String, bytes: String, enums: Number },
  });
  return withIds(plain, (id) => Buffer.from(id as string, 'base64').toString('hex'));
}

/** The same request with the IDs of its links changed. */
function withIds(request: object, change: (id: unknown) => unknown): object {
  const { dictionary } = request as { dictionary?: unknown };
  const links = isObject(dictionary) ? dictionary['linkTable'] : undefined;
  if (!Array.isArray(links)) return request;
  const linkTable = links.map((link: unknown) => {
    if (!isObject(link)) return link;
    const ids = IDS.filter((key) => link[key] !== undefined).map((key) => [key, change(link[key])]);
    return { ...link, ...Object.fromEntries(ids) };
  });
  return { ...request, dictionary: { ...(dictionary as object), linkTable } };
}
