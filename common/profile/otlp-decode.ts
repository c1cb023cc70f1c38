/**
 * Profiles out of an OTLP ExportProfilesServiceRequest, binary or JSON, of opentelemetry-proto 1.10 and later.
 *
 * Senders differ and some are wrong: a bad sample is left out and counted with its reason, everything else is
 * kept. Only what is no such request at all is refused, with a sentence. Attributes come in two forms, with their
 * key and text in place or as indices into the string table; both are read everywhere.
 */
import { opentelemetry } from '#otlp';
import {
  type Attributes,
  BadSample,
  DictionaryReader,
  number,
  text,
  toBigint,
  toNumber,
} from './otlp-dictionary.ts';
import { OLD_WIRE, OtlpError, scanRequest } from './otlp-scan.ts';
import type { Process, Profile, Sample } from './profile.ts';
import { emptyProcess, emptyProfile } from './profile.ts';

export { OtlpError };

type Request = opentelemetry.proto.collector.profiles.v1development.IExportProfilesServiceRequest;
type WireProfile = opentelemetry.proto.profiles.v1development.IProfile;
type WireSample = opentelemetry.proto.profiles.v1development.ISample;

const ExportRequest = opentelemetry.proto.collector.profiles.v1development.ExportProfilesServiceRequest;

export interface DecodeResult {
  profiles: Profile[];
  /** Sample entries left out. */
  rejected: number;
  /** Reason → events in the entries that were left out. */
  problems: Map<string, number>;
  /** Sample entries in the request, the rejected ones included. */
  totalSamples: number;
  /** Profiles of which no sample is left, though they had some. */
  rejectedProfiles: number;
}

const MAX_DEPTH = 2048;
const MAX_INLINED = 256;
const MAX_PROFILES = 65_536;
/** Table entries over all profiles of a request: each profile has its own copy of what it refers to. */
const MAX_ENTRIES = 8_000_000;
/** Opening braces and brackets in JSON: each becomes an object, and a real one takes 20 characters and more. */
const MAX_JSON_OBJECTS = 3_000_000;
/** Longest form of a time: `2026-11-21T04:38:42.123456789+00:00`, and some. */
const MAX_TIME_LENGTH = 40;

/** @throws OtlpError */
export function decodeOtlp(bytes: Uint8Array): DecodeResult {
  scanRequest(bytes);
  let request: Request;
  try {
    request = ExportRequest.decode(bytes);
  } catch (error) {
    throw new OtlpError(
      `these ${bytes.length} bytes are no OTLP profiles request of opentelemetry-proto 1.10 or later: ${(error as Error).message}`,
    );
  }
  return decodeRequest(request);
}

/** @throws OtlpError */
export function decodeOtlpJson(json: string): DecodeResult {
  let objects = 0;
  for (let i = 0; i < json.length; i++) {
    const code = json.charCodeAt(i);
    if ((code === 0x5b || code === 0x7b) && ++objects > MAX_JSON_OBJECTS) {
      throw new OtlpError(
        `this request of ${json.length} characters holds more than ${MAX_JSON_OBJECTS} objects: send smaller requests`,
      );
    }
  }
  let request: Request;
  try {
    const value: unknown = JSON.parse(json);
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      throw new TypeError('an object is needed');
    request = ExportRequest.fromObject(value);
  } catch (error) {
    throw new OtlpError(`this text is no OTLP profiles request in JSON: ${(error as Error).message}`);
  }
  return decodeRequest(request);
}

function decodeRequest(request: Request): DecodeResult {
  const result: DecodeResult = {
    profiles: [],
    rejected: 0,
    problems: new Map(),
    totalSamples: 0,
    rejectedProfiles: 0,
  };
  const resources = request.resourceProfiles ?? [];
  const dictionary = request.dictionary;
  if (!dictionary) {
    if (resources.length > 0) throw new OtlpError(`the request has no dictionary: ${OLD_WIRE}`);
    return result;
  }
  const reader = new DictionaryReader(dictionary);
  const state: RequestState = { reader, result, entriesLeft: MAX_ENTRIES, oldLooking: 0 };
  let profilesLeft = MAX_PROFILES;
  for (const resource of resources) {
    const attributes = reader.keyValues(resource.resource?.attributes ?? []);
    for (const scope of resource.scopeProfiles ?? []) {
      for (const profile of scope.profiles ?? []) {
        const samples = profile.samples ?? [];
        if (samples.length === 0) continue;
        if (profilesLeft-- <= 0) {
          for (const sample of samples) reject(result, `more than ${MAX_PROFILES} profiles`, sample);
          result.totalSamples += samples.length;
          result.rejectedProfiles++;
          continue;
        }
        const decoded = new ProfileDecoder(state, attributes).decode(profile);
        if (decoded.samples.length > 0) result.profiles.push(decoded);
        else result.rejectedProfiles++;
      }
    }
  }
  if (looksOld(state)) throw new OtlpError(OLD_WIRE);
  return result;
}

function reject(result: DecodeResult, reason: string, sample: WireSample): void {
  result.rejected++;
  result.problems.set(reason, (result.problems.get(reason) ?? 0) + eventsOf(sample));
}

/** As far as a sample that can't be read says. */
function eventsOf({ timestampsUnixNano, values }: WireSample): number {
  if (timestampsUnixNano?.length) return timestampsUnixNano.length;
  const sum = (values ?? []).reduce<number>((total, value) => total + toNumber(value), 0);
  return sum >= 1 && Number.isSafeInteger(sum) ? sum : 1;
}

interface RequestState {
  readonly reader: DictionaryReader;
  readonly result: DecodeResult;
  entriesLeft: number;
  /** Samples whose attributes are none that a sample has. */
  oldLooking: number;
}

const NO_STACK = 'stack index out of range';

/**
 * What the scan of the bytes can't see. Up to 1.9 a sample's values stood where its attributes stand now, so its
 * "attributes" are counts; up to 1.7 there was no table of stacks.
 */
function looksOld({ reader, result, oldLooking }: RequestState): boolean {
  const { totalSamples, rejected, problems } = result;
  if (totalSamples === 0) return false;
  if (oldLooking === totalSamples) return true;
  const hasNoStacks = (reader.tables.stackTable?.length ?? 0) === 0;
  return rejected === totalSamples && problems.size === 1 && problems.has(NO_STACK) && hasNoStacks;
}

class ProfileDecoder {
  readonly #state: RequestState;
  readonly #reader: DictionaryReader;
  readonly #resource: Attributes;
  readonly #profile = emptyProfile();
  // old index → new one, or why there is none: a bad entry costs its work once, however many samples refer to it
  readonly #mappings: Indices = new Map([[0, 0]]);
  readonly #functions: Indices = new Map([[0, 0]]);
  readonly #locations: Indices = new Map([[0, 0]]);
  readonly #stacks: Indices = new Map([[0, 0]]);
  readonly #processes = new Map<string, number>();
  /** By the indices of the attributes that say which process it is. */
  readonly #processesByIndices = new Map<string, number>();
  /** Texts of processes, so that their key is short whatever a sender makes of them. */
  readonly #texts = new Map<string, number>();

  constructor(state: RequestState, resource: Attributes) {
    this.#state = state;
    this.#reader = state.reader;
    this.#resource = resource;
  }

  decode(wire: WireProfile): Profile {
    const profile = this.#profile;
    profile.timeUnixNano = toBigint(wire.timeUnixNano);
    profile.durationNano = toBigint(wire.durationNano);
    profile.period = toBigint(wire.period);
    profile.sampleType = this.#valueType(wire.sampleType) ?? profile.sampleType;
    profile.periodType = this.#valueType(wire.periodType) ?? profile.periodType;
    for (const key of ['host.name', 'host.id', 'host.arch']) {
      const value = text(this.#resource, key);
      if (value !== '') profile.host[key] = value;
    }
    for (const sample of wire.samples ?? []) this.#addSample(sample);
    return profile;
  }

  #valueType(wire: WireProfile['sampleType']): Profile['sampleType'] | undefined {
    if (!wire) return undefined;
    const { stringTable } = this.#reader.tables;
    const name = (index: number | null | undefined): string => stringTable?.[index ?? 0] ?? '';
    return { type: name(wire.typeStrindex), unit: name(wire.unitStrindex) };
  }

  #addSample(wire: WireSample): void {
    const { result } = this.#state;
    result.totalSamples++;
    const attributes = wire.attributeIndices ?? [];
    if (attributes.length > 0 && attributes.every((index) => this.#reader.isOddForSample(index)))
      this.#state.oldLooking++;
    try {
      this.#profile.samples.push(this.#sample(wire));
    } catch (error) {
      if (!(error instanceof BadSample)) throw error;
      reject(result, error.message, wire);
    }
  }

  #sample(wire: WireSample): Sample {
    const attributes = this.#reader.attributes(wire.attributeIndices);
    const timestamps = (wire.timestampsUnixNano ?? []).map(toBigint);
    const values = (wire.values ?? []).map(toNumber);
    return {
      stack: this.#stack(wire.stackIndex ?? 0),
      process: this.#processOf(wire.attributeIndices ?? [], attributes),
      tid: number(attributes, 'thread.id'),
      threadName: text(attributes, 'thread.name'),
      cpu: attributes.has('cpu.logical_number') ? number(attributes, 'cpu.logical_number') : -1,
      count: countOf(timestamps.length, values),
      timestamps,
    };
  }

  #processOf(indices: readonly number[], attributes: Attributes): number {
    let key = '';
    for (const index of indices) if (!this.#reader.isOfThread(index)) key += `${index} `;
    let process = this.#processesByIndices.get(key);
    if (process === undefined) {
      process = this.#process(attributes);
      this.#processesByIndices.set(key, process);
    }
    return process;
  }

  #process(attributes: Attributes): number {
    const both = (key: string): string => text(attributes, key) || text(this.#resource, key);
    const pid = number(attributes, 'process.pid') || number(this.#resource, 'process.pid');
    const process: Process = {
      ...emptyProcess(),
      pid,
      parentPid: number(attributes, 'process.parent_pid') || number(this.#resource, 'process.parent_pid'),
      executableName: both('process.executable.name'),
      executablePath: both('process.executable.path'),
      commandName: both('process.command'),
      containerId: both('container.id'),
      cgroupPath: both('process.linux.cgroup'),
      serviceName: both('service.name'),
      startUnixNano: toUnixNano(both('process.creation.time')),
    };
    const { parentPid, startUnixNano, ...texts } = process;
    const ids = [texts.executableName, texts.executablePath, texts.commandName, texts.containerId]
      .concat(texts.cgroupPath, texts.serviceName)
      .map((value) => this.#textId(value));
    const key = `${pid}/${parentPid}/${startUnixNano}/${ids.join('/')}`;
    let index = this.#processes.get(key);
    if (index === undefined) {
      index = this.#profile.processes.push(process) - 1;
      this.#processes.set(key, index);
    }
    return index;
  }

  #textId(value: string): number {
    const known = this.#texts.get(value);
    if (known !== undefined) return known;
    this.#texts.set(value, this.#texts.size);
    return this.#texts.size - 1;
  }

  #stack(old: number): number {
    return this.#entry(this.#stacks, old, () => {
      const stack = this.#reader.tables.stackTable?.[old];
      if (!stack) throw new BadSample(NO_STACK);
      const indices = stack.locationIndices ?? [];
      if (indices.length > MAX_DEPTH) throw new BadSample(`stack deeper than ${MAX_DEPTH} frames`);
      this.#spend(indices.length);
      const locations = new Uint32Array(indices.length);
      for (let i = 0; i < indices.length; i++) {
        const known = this.#locations.get(indices[i]!);
        locations[i] = typeof known === 'number' ? known : this.#location(indices[i]!);
      }
      return this.#profile.stacks.push(locations) - 1;
    });
  }

  #location(old: number): number {
    return this.#entry(this.#locations, old, () => {
      const location = this.#reader.tables.locationTable?.[old];
      if (!location) throw new BadSample('location index out of range');
      const lines = location.lines ?? [];
      if (lines.length > MAX_INLINED)
        throw new BadSample(`more than ${MAX_INLINED} inlined functions at one location`);
      this.#spend(1 + lines.length + (location.attributeIndices?.length ?? 0));
      const { type, generated } = this.#reader.place(location.attributeIndices);
      return (
        this.#profile.locations.push({
          mapping: this.#mapping(location.mappingIndex ?? 0),
          address: toBigint(location.address),
          frameType: type,
          lines: lines.map((line) => ({
            func: this.#function(line.functionIndex ?? 0),
            line: toNumber(line.line),
            column: toNumber(line.column),
          })),
          ...(generated ? { generated } : {}),
        }) - 1
      );
    });
  }

  #mapping(old: number): number {
    return this.#entry(this.#mappings, old, () => {
      const mapping = this.#reader.tables.mappingTable?.[old];
      if (!mapping) throw new BadSample('mapping index out of range');
      this.#spend(1 + (mapping.attributeIndices?.length ?? 0));
      const attributes = this.#reader.attributes(mapping.attributeIndices);
      return (
        this.#profile.mappings.push({
          memoryStart: toBigint(mapping.memoryStart),
          memoryLimit: toBigint(mapping.memoryLimit),
          fileOffset: toBigint(mapping.fileOffset),
          filename: this.#reader.string(mapping.filenameStrindex),
          gnuBuildId: text(attributes, 'process.executable.build_id.gnu'),
          goBuildId: text(attributes, 'process.executable.build_id.go'),
          fileId: text(attributes, 'process.executable.build_id.htlhash'),
        }) - 1
      );
    });
  }

  #function(old: number): number {
    return this.#entry(this.#functions, old, () => {
      const func = this.#reader.tables.functionTable?.[old];
      if (!func) throw new BadSample('function index out of range');
      this.#spend(1);
      return (
        this.#profile.functions.push({
          name: this.#reader.string(func.nameStrindex),
          systemName: this.#reader.string(func.systemNameStrindex),
          filename: this.#reader.string(func.filenameStrindex),
          startLine: toNumber(func.startLine),
        }) - 1
      );
    });
  }

  /** Before the work is done, so that a refusal is cheap. */
  #spend(entries: number): void {
    if (entries > this.#state.entriesLeft)
      throw new BadSample(`the request's stacks and frames add up to more than ${MAX_ENTRIES}`);
    this.#state.entriesLeft -= entries;
  }

  #entry(known: Indices, old: number, make: () => number): number {
    let index = known.get(old);
    if (index === undefined) {
      try {
        index = make();
      } catch (error) {
        if (!(error instanceof BadSample)) throw error;
        index = error;
      }
      known.set(old, index);
    }
    if (typeof index === 'number') return index;
    throw index;
  }
}

type Indices = Map<number, number | BadSample>;

/** One an event; without timestamps the values say how many, without values it is one. */
function countOf(timestamps: number, values: readonly number[]): number {
  if (timestamps > 0) {
    if (values.length > 1 && values.length !== timestamps)
      throw new BadSample('as many values as timestamps are needed');
    return timestamps;
  }
  if (values.length === 0) return 1;
  const count = values.reduce((sum, value) => sum + value, 0);
  if (!(count > 0 && Number.isSafeInteger(count))) throw new BadSample('values that are no count above 0');
  return count;
}

function toUnixNano(isoTime: string): bigint {
  if (isoTime === '' || isoTime.length > MAX_TIME_LENGTH) return 0n;
  const ms = Date.parse(isoTime);
  return Number.isNaN(ms) || ms < 0 ? 0n : BigInt(ms) * 1_000_000n;
}
