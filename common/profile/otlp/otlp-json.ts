/** OTLP in its JSON form: the request of otlp-encode.ts. */
import { isObject } from '../model/json.ts';
import type { Profile } from '../model/profile.ts';
import { type DecodeResult, decodeOtlp, OtlpError } from './otlp-decode.ts';
import { encodeOtlp, type ScopeInfo } from './otlp-encode.ts';
import { jsonToProtobuf, protobufToJson } from './otlp-json-request.ts';
import { FILE_LIMITS, scanJson } from './otlp-json-scan.ts';

export function writeOtlpJson(profiles: readonly Profile[], info: ScopeInfo): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(protobufToJson(encodeOtlp(profiles, info))));
}

/** @throws OtlpError */
export function decodeOtlpJson(json: string, limits = FILE_LIMITS): DecodeResult {
  scanJson(json, limits);
  let bytes: Uint8Array;
  try {
    const value: unknown = JSON.parse(json);
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      throw new TypeError('an object is needed');
    bytes = jsonToProtobuf(value);
  } catch (error) {
    throw new OtlpError(`this text is not an OTLP profiles request in JSON: ${(error as Error).message}`);
  }
  return decodeOtlp(bytes);
}

/** The same request in protobuf. @throws Error for what `decodeOtlpJson` refuses to parse */
export const otlpJsonToProtobuf = (json: string): Uint8Array => jsonToProtobuf(JSON.parse(json) as object);

export const isOtlpJson = (value: unknown): boolean => isObject(value) && isObject(value['dictionary']);

export const readOtlpJson = (value: unknown): DecodeResult => decodeOtlpJson(JSON.stringify(value));
