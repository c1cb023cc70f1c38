/**
 * Profiles out of an OTLP ExportProfilesServiceRequest of opentelemetry-proto 1.10 and later.
 *
 * Senders differ and some are wrong: a bad sample is left out and counted with its reason, everything else is
 * kept. Only what is no such request at all is refused, with a sentence. Attributes come in two forms, with their
 * key and text in place or as indices into the string table; both are read everywhere.
 */
import { BadProtobuf, bytesTag, ProtoReader } from '../../protobuf/proto-reader.ts';
import { type ColumnProfile, wholeProfile } from '../model/frame-columns.ts';
import { StringCache } from '../model/string-cache.ts';
import { type DecodeResult, looksOld, MAX_PROFILES, RequestState } from './decode-state.ts';
import { type Attributes, DictionaryReader } from './otlp-dictionary.ts';
import { layOut, type ProfileHeader, Ranges, rangesOf, readProfileHeader } from './otlp-request.ts';
import { OLD_WIRE, OtlpError, scanRequest } from './otlp-scan.ts';
import { ProfileDecoder } from './profile-decoder.ts';

export type { DecodeResult };
export { OtlpError };

/** Of empty ones. */
const RESOURCES_PER_STEP = 4096;

/** @throws OtlpError */
export function decodeOtlp(bytes: Uint8Array): DecodeResult {
  const { profiles, ...rest } = decodeColumns(bytes, new StringCache());
  return { profiles: profiles.map(wholeProfile), ...rest };
}

/**
 * @param strings what is kept from one request to the next; the profiles are good until the next begins
 * @throws OtlpError
 */
export function decodeColumns(bytes: Uint8Array, strings: StringCache): DecodeResult<ColumnProfile> {
  const steps = decodeInSteps(bytes, strings);
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

/** As {@link decodeColumns}, in steps between which something else may be done. */
export function* decodeInSteps(
  bytes: Uint8Array,
  strings: StringCache,
): Generator<void, DecodeResult<ColumnProfile>> {
  scanRequest(bytes);
  yield;
  strings.beginRequest();
  try {
    return yield* decodeRequest(new ProtoReader(bytes), strings);
  } catch (error) {
    if (!(error instanceof BadProtobuf)) throw error;
    throw new OtlpError(
      `these ${bytes.length} bytes are not an OTLP profiles request of opentelemetry-proto 1.10 or later: ${error.message}`,
    );
  }
}

function* decodeRequest(
  reader: ProtoReader,
  strings: StringCache,
): Generator<void, DecodeResult<ColumnProfile>> {
  const result: DecodeResult<ColumnProfile> = {
    profiles: [],
    rejected: 0,
    problems: new Map(),
    totalSamples: 0,
    rejectedProfiles: 0,
  };
  const { tables, resourceProfiles } = layOut(reader);
  yield;
  if (!tables) {
    if (resourceProfiles.length > 0) throw new OtlpError(`the request has no dictionary: ${OLD_WIRE}`);
    return result;
  }
  const state = new RequestState(new DictionaryReader(reader, tables, strings), strings, result);
  for (let i = 0; i < resourceProfiles.length; i++) {
    const end = resourceProfiles.open(reader, i);
    if (reader.at < end) yield* decodeResource(state, reader.at, end);
    if (i % RESOURCES_PER_STEP === 0) yield;
  }
  if (looksOld(state)) throw new OtlpError(OLD_WIRE);
  return result;
}

/** Nothing is made for what has no samples: two bytes are a resource, and there may be millions. */
function* decodeResource(state: RequestState, start: number, end: number): Generator<void, void> {
  const { reader } = state.dictionary;
  let attributes: Attributes | undefined;
  for (let scopeEnd = nextMessage(reader, end); scopeEnd >= 0; scopeEnd = nextMessage(reader, end)) {
    for (let at = nextMessage(reader, scopeEnd); at >= 0; at = nextMessage(reader, scopeEnd)) {
      const profileStart = reader.at;
      if (nextMessage(reader, at) >= 0) {
        attributes ??= readResource(state.dictionary, start, end);
        reader.at = profileStart;
        yield* decodeProfile(state, attributes, readProfileHeader(reader, at));
      }
      reader.at = at;
    }
  }
}

/** Of a resource the next scope, of a scope the next profile, of a profile the next sample: each is field 2. Moves there. */
function nextMessage(reader: ProtoReader, end: number): number {
  while (reader.at < end) {
    const tag = reader.int32();
    if (tag === bytesTag(2)) return reader.end();
    reader.skip(tag);
  }
  return -1;
}

function* decodeProfile(
  state: RequestState,
  resource: Attributes,
  header: ProfileHeader,
): Generator<void, void> {
  const { result } = state;
  if (state.profilesLeft-- <= 0) {
    state.rejectAll(header, `more than ${MAX_PROFILES} profiles`);
    result.rejectedProfiles++;
    return;
  }
  const before = result.rejected;
  const decoded = yield* new ProfileDecoder(state, resource).decode(header);
  if (decoded.samples.length > 0) result.profiles.push(decoded);
  // a heap may have only values of 0
  else if (result.rejected > before) result.rejectedProfiles++;
}

/** The resource is field 1, its attributes are the resource's field 1. */
function readResource(dictionary: DictionaryReader, start: number, end: number): Attributes {
  const { reader } = dictionary;
  reader.at = start;
  const pairs = new Ranges();
  const resources = rangesOf(reader, end, 1);
  for (let i = 0; i < resources.length; i++) {
    const attributes = rangesOf(reader, resources.open(reader, i), 1);
    for (let j = 0; j < attributes.length; j++) {
      const pairEnd = attributes.open(reader, j);
      pairs.push(reader.at, pairEnd);
    }
  }
  return dictionary.keyValues(pairs);
}
