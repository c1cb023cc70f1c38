/** OTLP in its JSON form: the request of otlp-encode.ts, 64-bit numbers as strings, bytes in base64. */
import { opentelemetry } from '#otlp';
import { isObject } from '../model/json.ts';
import type { Profile } from '../model/profile.ts';
import { type DecodeResult, decodeOtlpJson } from './otlp-decode.ts';
import { encodeOtlp, type ScopeInfo } from './otlp-encode.ts';

const ExportRequest = opentelemetry.proto.collector.profiles.v1development.ExportProfilesServiceRequest;

export function writeOtlpJson(profiles: readonly Profile[], info: ScopeInfo): Uint8Array {
  const request = ExportRequest.decode(encodeOtlp(profiles, info));
  const plain = ExportRequest.toObject(request, { longs: String, bytes: String, enums: Number });
  return new TextEncoder().encode(JSON.stringify(plain));
}

/** The same request in protobuf. @throws Error for what `decodeOtlpJson` refuses to parse */
export const otlpJsonToProtobuf = (json: string): Uint8Array =>
  ExportRequest.encode(ExportRequest.fromObject(JSON.parse(json) as object)).finish();

export const isOtlpJson = (value: unknown): boolean => isObject(value) && isObject(value['dictionary']);

export const readOtlpJson = (value: unknown): DecodeResult => decodeOtlpJson(JSON.stringify(value));
