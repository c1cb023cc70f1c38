/**
 * Profiles out of an OTLP ExportProfilesServiceRequest, binary or JSON, of opentelemetry-proto 1.10 and later.
 *
 * Senders differ and some are wrong: a bad sample is left out and counted with its reason, everything else is
 * kept. Only what is no such request at all is refused, with a sentence. Attributes come in two forms, with their
 * key and text in place or as indices into the string table; both are read everywhere.
 */
import { opentelemetry } from '#otlp';
import type { FrameType, Process, Profile, Sample } from './profile.ts';
import { emptyProcess, emptyProfile } from './profile.ts';

type Request = opentelemetry.proto.collector.profiles.v1development.IExportProfilesServiceRequest;
type Dictionary = opentelemetry.proto.profiles.v1development.IProfilesDictionary;
type WireProfile = opentelemetry.proto.profiles.v1development.IProfile;
type WireSample = opentelemetry.proto.profiles.v1development.ISample;
type AnyValue = opentelemetry.proto.common.v1.IAnyValue;
type KeyValue = opentelemetry.proto.common.v1.IKeyValue;
type Integer = { toString(): string } | number | null | undefined;

const ExportRequest = opentelemetry.proto.collector.profiles.v1development.ExportProfilesServiceRequest;

/** The bytes are no OTLP profiles request that can be read; the message is for the sender's operator. */
export class OtlpError extends Error {
  override readonly name = 'OtlpError';
}

export interface DecodeResult {
  profiles: Profile[];
  /** Samples left out. */
  rejected: number;
  /** Reason → samples. */
  problems: Map<string, number>;
  /** Sample entries in the request, the rejected ones included. */
  totalSamples: number;
}

const MAX_DEPTH = 2048;
const MAX_INLINED = 256;
/** Events that one sample entry may stand for. */
const MAX_EVENTS = 10_000_000;
const FRAME_TYPES: ReadonlySet<string> = new Set<FrameType>([
  'native',
  'kernel',
  'go',
  'cpython',
  'jvm',
  'ruby',
  'perl',
  'php',
  'phpjit',
  'v8js',
  'dotnet',
  'beam',
  'luajit',
  'abort-marker',
]);

const OLD_WIRE =
  'this request is in the layout of opentelemetry-proto 1.9 or older; version 1.10 or later is needed: update the sender';

/** @throws OtlpError */
export function decodeOtlp(bytes: Uint8Array): DecodeResult {
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
export function decodeOtlpJson(text: string): DecodeResult {
  try {
    return decodeRequest(ExportRequest.fromObject(JSON.parse(text)));
  } catch (error) {
    if (error instanceof OtlpError) throw error;
    throw new OtlpError(`this text is no OTLP profiles request in JSON: ${(error as Error).message}`);
  }
}

function decodeRequest(request: Request): DecodeResult {
  const result: DecodeResult = { profiles: [], rejected: 0, problems: new Map(), totalSamples: 0 };
  const resources = request.resourceProfiles ?? [];
  const dictionary = request.dictionary;
  if (!dictionary) {
    if (resources.length > 0) throw new OtlpError(`the request has no dictionary: ${OLD_WIRE}`);
    return result;
  }
  const reader = new DictionaryReader(dictionary);
  for (const resource of resources) {
    const attributes = reader.keyValues(resource.resource?.attributes ?? []);
    for (const scope of resource.scopeProfiles ?? []) {
      for (const profile of scope.profiles ?? []) {
        const decoded = new ProfileDecoder(reader, attributes, result).decode(profile);
        if (decoded.samples.length > 0) result.profiles.push(decoded);
      }
    }
  }
  // every single sample misses its stack: fields were renumbered in 1.10
  if (result.totalSamples > 0 && result.rejected === result.totalSamples && reader.looksOld(result)) {
    throw new OtlpError(OLD_WIRE);
  }
  return result;
}

/** Numbers are exact up to 2^53, which is all that counts and identifiers here need. */
const toNumber = (value: Integer): number =>
  value === null || value === undefined ? 0 : Number(value.toString());
const toBigint = (value: Integer): bigint =>
  value === null || value === undefined ? 0n : BigInt.asUintN(64, BigInt(value.toString()));

type Attributes = Map<string, string | number>;

class DictionaryReader {
  readonly dictionary: Dictionary;
  readonly #attributes: (readonly [string, string | number] | undefined)[] = [];

  constructor(dictionary: Dictionary) {
    this.dictionary = dictionary;
  }

  string(index: Integer): string {
    return this.dictionary.stringTable?.[toNumber(index)] ?? '';
  }

  keyValues(pairs: readonly KeyValue[]): Attributes {
    return new Map(
      pairs.map(({ key, keyStrindex, value }) => [key || this.string(keyStrindex), this.#value(value)]),
    );
  }

  attributes(indices: readonly Integer[] | null | undefined): Attributes {
    const found: Attributes = new Map();
    for (const index of indices ?? []) {
      const attribute = this.#attribute(toNumber(index));
      if (attribute) found.set(attribute[0], attribute[1]);
    }
    return found;
  }

  looksOld({ problems }: DecodeResult): boolean {
    return problems.size === 1 && problems.has(NO_STACK) && (this.dictionary.stackTable?.length ?? 0) === 0;
  }

  #attribute(index: number): readonly [string, string | number] | undefined {
    const known = this.#attributes[index];
    if (known) return known;
    const entry = this.dictionary.attributeTable?.[index];
    if (!entry) return undefined;
    const pair = [this.string(entry.keyStrindex), this.#value(entry.value)] as const;
    this.#attributes[index] = pair;
    return pair;
  }

  #value(value: AnyValue | null | undefined): string | number {
    if (!value) return '';
    if (value.stringValueStrindex) return this.string(value.stringValueStrindex);
    if (value.stringValue) return value.stringValue;
    if (value.intValue !== null && value.intValue !== undefined && toNumber(value.intValue) !== 0) {
      return toNumber(value.intValue);
    }
    return value.doubleValue || (value.boolValue ? 'true' : '') || toNumber(value.intValue) || '';
  }
}

const NO_STACK = 'stack index out of range';

class BadSample extends Error {}

const text = (attributes: Attributes, key: string): string => String(attributes.get(key) ?? '');
const number = (attributes: Attributes, key: string): number => {
  const value = Number(attributes.get(key) ?? 0);
  return Number.isSafeInteger(value) ? value : 0;
};

class ProfileDecoder {
  readonly #reader: DictionaryReader;
  readonly #resource: Attributes;
  readonly #result: DecodeResult;
  readonly #profile = emptyProfile();
  readonly #mappings = new Map<number, number>([[0, 0]]);
  readonly #functions = new Map<number, number>([[0, 0]]);
  readonly #locations = new Map<number, number>([[0, 0]]);
  readonly #stacks = new Map<number, number>([[0, 0]]);
  readonly #processes = new Map<string, number>();

  constructor(reader: DictionaryReader, resource: Attributes, result: DecodeResult) {
    this.#reader = reader;
    this.#resource = resource;
    this.#result = result;
  }

  decode(wire: WireProfile): Profile {
    const profile = this.#profile;
    const { string } = { string: (index: Integer) => this.#reader.string(index) };
    profile.timeUnixNano = toBigint(wire.timeUnixNano);
    profile.durationNano = toBigint(wire.durationNano);
    profile.period = toBigint(wire.period);
    if (wire.sampleType) {
      profile.sampleType = {
        type: string(wire.sampleType.typeStrindex),
        unit: string(wire.sampleType.unitStrindex),
      };
    }
    if (wire.periodType) {
      profile.periodType = {
        type: string(wire.periodType.typeStrindex),
        unit: string(wire.periodType.unitStrindex),
      };
    }
    for (const key of ['host.name', 'host.id', 'host.arch']) {
      const value = text(this.#resource, key);
      if (value !== '') profile.host[key] = value;
    }
    for (const sample of wire.samples ?? []) this.#addSample(sample);
    return profile;
  }

  #addSample(wire: WireSample): void {
    const { problems } = this.#result;
    this.#result.totalSamples++;
    try {
      this.#profile.samples.push(this.#sample(wire));
    } catch (error) {
      if (!(error instanceof BadSample)) throw error;
      this.#result.rejected++;
      problems.set(error.message, (problems.get(error.message) ?? 0) + 1);
    }
  }

  #sample(wire: WireSample): Sample {
    const attributes = this.#reader.attributes(wire.attributeIndices);
    const timestamps = (wire.timestampsUnixNano ?? []).map(toBigint);
    const values = (wire.values ?? []).map(toNumber);
    return {
      stack: this.#stack(toNumber(wire.stackIndex)),
      process: this.#process(attributes),
      tid: number(attributes, 'thread.id'),
      threadName: text(attributes, 'thread.name'),
      cpu: attributes.has('cpu.logical_number') ? number(attributes, 'cpu.logical_number') : -1,
      count: countOf(timestamps.length, values),
      timestamps,
    };
  }

  #process(attributes: Attributes): number {
    const both = (key: string): string => text(attributes, key) || text(this.#resource, key);
    const pid = number(attributes, 'process.pid') || number(this.#resource, 'process.pid');
    const created = both('process.creation.time');
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
      startUnixNano: toUnixNano(created),
    };
    const key = Object.values(process).join('\0');
    let index = this.#processes.get(key);
    if (index === undefined) {
      index = this.#profile.processes.push(process) - 1;
      this.#processes.set(key, index);
    }
    return index;
  }

  #stack(old: number): number {
    return this.#entry(this.#stacks, old, () => {
      const stack = this.#reader.dictionary.stackTable?.[old];
      if (!stack) throw new BadSample(NO_STACK);
      const indices = stack.locationIndices ?? [];
      if (indices.length > MAX_DEPTH) throw new BadSample(`stack deeper than ${MAX_DEPTH} frames`);
      const locations = Uint32Array.from(indices, (index) => this.#location(index));
      return this.#profile.stacks.push(locations) - 1;
    });
  }

  #location(old: number): number {
    return this.#entry(this.#locations, old, () => {
      const location = this.#reader.dictionary.locationTable?.[old];
      if (!location) throw new BadSample('location index out of range');
      const lines = location.lines ?? [];
      if (lines.length > MAX_INLINED)
        throw new BadSample(`more than ${MAX_INLINED} inlined functions at one location`);
      const type = text(this.#reader.attributes(location.attributeIndices), 'profile.frame.type');
      return (
        this.#profile.locations.push({
          mapping: this.#mapping(toNumber(location.mappingIndex)),
          address: toBigint(location.address),
          frameType: FRAME_TYPES.has(type) ? (type as FrameType) : '',
          lines: lines.map((line) => ({
            func: this.#function(toNumber(line.functionIndex)),
            line: toNumber(line.line),
            column: toNumber(line.column),
          })),
        }) - 1
      );
    });
  }

  #mapping(old: number): number {
    return this.#entry(this.#mappings, old, () => {
      const mapping = this.#reader.dictionary.mappingTable?.[old];
      if (!mapping) throw new BadSample('mapping index out of range');
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
      const func = this.#reader.dictionary.functionTable?.[old];
      if (!func) throw new BadSample('function index out of range');
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

  #entry(known: Map<number, number>, old: number, make: () => number): number {
    let index = known.get(old);
    if (index === undefined) {
      index = make();
      known.set(old, index);
    }
    return index;
  }
}

/** One an event; without timestamps the values say how many, without values it is one. */
function countOf(timestamps: number, values: readonly number[]): number {
  if (timestamps > 0) {
    if (values.length > 1 && values.length !== timestamps)
      throw new BadSample('as many values as timestamps are needed');
    return timestamps;
  }
  if (values.length === 0) return 1;
  const count = values.reduce((sum, value) => sum + value, 0);
  if (!(count > 0 && count <= MAX_EVENTS))
    throw new BadSample(`a count that is not between 1 and ${MAX_EVENTS}`);
  return count;
}

function toUnixNano(isoTime: string): bigint {
  const ms = Date.parse(isoTime);
  return Number.isNaN(ms) || ms < 0 ? 0n : BigInt(ms) * 1_000_000n;
}
