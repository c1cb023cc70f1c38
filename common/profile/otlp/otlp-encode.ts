/**
 * A profile as an OTLP ExportProfilesServiceRequest (opentelemetry-proto 1.10 and later). The request is written
 * in one pass over the samples: a dictionary entry is made when something first refers to it, so there are no
 * orphans and no duplicates, whatever the profile's own tables hold. Entry 0 of each table is its zero value.
 *
 * Resources are grouped by service, container and executable; process and thread are attributes of the sample.
 * What receivers need of it was tried with the OpenTelemetry Collector and read in the sources of others.
 */

import { ProtoWriter } from '../../protobuf/proto-writer.ts';
import { attributesText, readAttributes } from '../model/attributes.ts';
import {
  emptyProfile,
  FUNCTION_START,
  GENERATED_PLACE,
  type Location,
  type Mapping,
  type Process,
  type Profile,
  type Sample,
} from '../model/profile.ts';
import { MAX_VALUE, type ProfileType, type ValueType } from '../model/profile-type.ts';
import { isOfSample, mayBeOfSample } from '../model/sample-attributes.ts';
import { FILENAME, FunctionStrings, NAME, START_LINE, SYSTEM_NAME } from './function-strings.ts';
import { EntryTable, StringTable } from './otlp-tables.ts';
import { needsOwnPeriod, REAL_NAME, singleValues, withOwnPeriod } from './own-period.ts';

export interface ScopeInfo {
  scopeName: string;
  scopeVersion: string;
}

const SCHEMA_URL = 'https://opentelemetry.io/schemas/1.37.0';

/** @param profiles of one file: they share their tables, and become profiles of one request */
export function encodeOtlp(profiles: readonly Profile[], info: ScopeInfo): Uint8Array {
  const steps = new OtlpEncoder(info).encode(profiles);
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

const SAMPLES_PER_STEP = 16;
/** After a larger request its messages are made anew: it must not hold memory for good. */
const KEPT_BYTES = 1 << 20;

/** Those that hold others. They are kept, so that not each request asks for their room again. */
const makeMessages = () => ({
  request: new ProtoWriter(256 << 10),
  dictionary: new ProtoWriter(128 << 10),
  resource: new ProtoWriter(16 << 10),
  scope: new ProtoWriter(16 << 10),
  profile: new ProtoWriter(16 << 10),
});
const NONE = emptyProfile();

const hasTablesOf = (a: Profile, b: Profile): boolean =>
  a.stacks === b.stacks &&
  a.locations === b.locations &&
  a.functions === b.functions &&
  a.mappings === b.mappings &&
  a.processes === b.processes &&
  a.links === b.links;

/** Smaller profiles of at most `maxSamples` (1 at least) entries of `samples` each; they share the tables. */
export function splitProfile(profile: Profile, maxSamples: number): Profile[] {
  if (!(maxSamples >= 1))
    throw new RangeError(`a profile can't be split into parts of ${maxSamples} samples`);
  if (profile.samples.length <= maxSamples) return [profile];
  const parts: Profile[] = [];
  for (let i = 0; i < profile.samples.length; i += maxSamples) {
    parts.push({ ...profile, samples: profile.samples.slice(i, i + maxSamples) });
  }
  return parts;
}

/** Keeps its tables' room, and what texts there are, from one profile to the next. */
export class OtlpEncoder {
  readonly #info: ScopeInfo;
  readonly #strings = new StringTable(5);
  readonly #functionStrings = new FunctionStrings(this.#strings);
  readonly #mappingTable = new EntryTable(1, 4096);
  readonly #locationTable = new EntryTable(2, 32 << 10);
  readonly #functionTable = new EntryTable(3, 16 << 10);
  readonly #linkTable = new EntryTable(4, 256);
  readonly #attributeTable = new EntryTable(6, 8192);
  readonly #stackTable = new EntryTable(7, 32 << 10);
  /** Key → value → index, so that a known attribute need not be written again to be found. */
  readonly #textAttributes = new Map<string, Map<string, number>>();
  readonly #intAttributes = new Map<string, Map<number, number>>();
  /** Attributes of a location whose frame is of a type. */
  readonly #frameTypes = new Map<string, number[]>();
  #messages = makeMessages();
  readonly #inner = new ProtoWriter();
  readonly #innermost = new ProtoWriter();
  #isBusy = false;
  #profile: Profile = NONE;
  /** New index of each of the profile's entries, -1 where nothing has referred to it yet. */
  #mappings = new Int32Array(0);
  #locations = new Int32Array(0);
  #functions = new Int32Array(0);
  #stacks = new Int32Array(0);
  #links = new Int32Array(0);
  readonly #processAttributes = new Map<number, number[]>();
  /** Of the sample that is being written: at most 64 of its process and what has a place of its own. */
  readonly #attributes = new Int32Array(128);
  /** Of the stack that is being written. */
  #stackLocations = new Int32Array(256);

  constructor(info: ScopeInfo) {
    this.#info = info;
  }

  #begin(profile: Profile): void {
    this.#profile = profile;
    if (this.#messages.request.length > KEPT_BYTES) this.#messages = makeMessages();
    this.#mappings = new Int32Array(profile.mappings.length).fill(-1);
    this.#locations = new Int32Array(profile.locations.length).fill(-1);
    this.#functions = new Int32Array(profile.functions.length).fill(-1);
    this.#stacks = new Int32Array(profile.stacks.length).fill(-1);
    this.#links = new Int32Array(profile.links.length).fill(-1);
    this.#strings.clear();
    this.#functionStrings.begin(profile.functions);
    for (const table of [
      this.#mappingTable,
      this.#locationTable,
      this.#functionTable,
      this.#linkTable,
      this.#attributeTable,
      this.#stackTable,
    ])
      table.clear();
    this.#textAttributes.clear();
    this.#intAttributes.clear();
    this.#frameTypes.clear();
    this.#processAttributes.clear();
  }

  /**
   * In steps of some samples each.
   *
   * @param profiles with the same arrays as their tables
   * @throws Error where the steps of another request are not done, or where tables differ
   */
  *encode(profiles: readonly Profile[]): Generator<void, Uint8Array> {
    if (!profiles.every((profile) => hasTablesOf(profile, profiles[0]!)))
      throw new Error('profiles of one request share their tables: merge them first');
    if (this.#isBusy) throw new Error('an encoder writes one request after the other');
    this.#isBusy = true;
    try {
      return yield* this.#encode(profiles);
    } finally {
      this.#isBusy = false;
      this.#profile = NONE;
    }
  }

  *#encode(profiles: readonly Profile[]): Generator<void, Uint8Array> {
    this.#begin(profiles[0] ?? NONE);
    const { request, resource, dictionary } = this.#messages;
    request.clear();
    const windows = profiles.map(windowOf);
    for (const { process, samples } of this.#groupByResource(profiles)) {
      resource.clear();
      resource.bytes(1, this.#resource(process));
      resource.bytes(2, yield* this.#scope(profiles, samples, windows));
      resource.string(3, SCHEMA_URL);
      request.message(1, resource);
    }
    dictionary.clear();
    dictionary.raw(this.#mappingTable.finish());
    dictionary.raw(this.#locationTable.finish());
    dictionary.raw(this.#functionTable.finish());
    dictionary.raw(this.#linkTable.finish());
    dictionary.raw(this.#strings.finish());
    dictionary.raw(this.#attributeTable.finish());
    dictionary.raw(this.#stackTable.finish());
    request.message(2, dictionary);
    // a copy: the writer is used again, and requests wait in queues that count their bytes
    return new Uint8Array(request.finish());
  }

  /** A group for each set of what resources say of processes, with the first of its processes. */
  #groupByResource(profiles: readonly Profile[]): Iterable<Group> {
    const groups = new Map<string, Group>();
    const ofProcesses: (Group | undefined)[] = [];
    for (let type = 0; type < profiles.length; type++) {
      const all = profiles[type]!.samples;
      for (let i = 0; i < all.length; i++) {
        const sample = all[i]!;
        let group = ofProcesses[sample.process];
        if (!group) {
          const process = this.#profile.processes[sample.process]!;
          const resource = resourceOf(process);
          group = groups.get(resource) ?? { process, samples: profiles.map(() => []) };
          groups.set(resource, group);
          ofProcesses[sample.process] = group;
        }
        group.samples[type]!.push(sample);
      }
    }
    return groups.values();
  }

  #resource(process: Process): Uint8Array {
    const resource = new ProtoWriter(256);
    const attributes: [string, string][] = [
      ...Object.entries(this.#profile.host),
      ['service.name', process.serviceName],
      ['container.id', process.containerId],
      ['process.executable.name', process.executableName],
      ['process.executable.path', process.executablePath],
      ...[...readAttributes(process.attributes ?? '')].filter(([key]) => !isOfSample(key)),
    ];
    for (const [key, value] of attributes) {
      if (value === '') continue;
      this.#innermost.clear();
      this.#innermost.string(1, value);
      this.#inner.clear();
      this.#inner.string(1, key);
      this.#inner.message(2, this.#innermost);
      resource.message(1, this.#inner);
    }
    return resource.finish();
  }

  /** A message for each type of which there are samples. */
  *#scope(
    profiles: readonly Profile[],
    samples: readonly Sample[][],
    windows: readonly Window[],
  ): Generator<void, Uint8Array> {
    const { scope } = this.#messages;
    scope.clear();
    this.#inner.clear();
    this.#inner.string(1, this.#info.scopeName);
    this.#inner.string(2, this.#info.scopeVersion);
    scope.message(1, this.#inner);
    for (let type = 0; type < profiles.length; type++) {
      if (samples[type]!.length === 0) continue;
      scope.bytes(2, yield* this.#profileMessage(profiles[type]!.type, samples[type]!, windows[type]!));
    }
    scope.string(3, SCHEMA_URL);
    return scope.finish();
  }

  *#profileMessage(
    type: ProfileType,
    samples: readonly Sample[],
    window: Window,
  ): Generator<void, Uint8Array> {
    const { sampleType, periodType, period } = withOwnPeriod(type);
    const isSingle = needsOwnPeriod(type);
    const { profile: message } = this.#messages;
    message.clear();
    message.bytes(1, this.#valueType(sampleType));
    for (let i = 0; i < samples.length; i++) {
      const sample = samples[i]!;
      if (isSingle) for (const one of singleValues(sample)) message.message(2, this.#sample(one));
      else message.message(2, this.#sample(sample));
      if ((i + 1) % SAMPLES_PER_STEP === 0) yield;
    }
    message.fixed64(3, window.start);
    message.uint(4, window.duration);
    // an empty one would be a type
    if (periodType.type !== '' || periodType.unit !== '') message.bytes(5, this.#valueType(periodType));
    message.uint(6, period);
    if (sampleType.type !== type.sampleType.type)
      message.packedUint(11, [this.#textAttribute(REAL_NAME, type.sampleType.type)]);
    return message.finish();
  }

  #valueType({ type, unit }: ValueType): Uint8Array {
    const message = new ProtoWriter(16);
    message.uint(1, this.#strings.indexOf(type));
    message.uint(2, this.#strings.indexOf(unit));
    return message.finish();
  }

  #sample(sample: Sample): ProtoWriter {
    // its dictionary entries use the shared writers, so they come first
    const stack = this.#stack(sample.stack);
    const count = this.#sampleAttributes(sample);
    const link = sample.link ? this.#link(sample.link) : 0;
    this.#inner.clear();
    this.#inner.uint(1, stack);
    this.#inner.packedUint(2, this.#attributes, count);
    this.#inner.uint(3, link);
    // each of its timestamps stands for 1 where it has no values; without timestamps it has one value
    if (sample.values) this.#inner.packedUint(4, int64s(sample.values));
    else if (sample.timestamps.length === 0) this.#inner.packedUint(4, int64s([sample.value]));
    this.#inner.packedFixed64(5, sample.timestamps);
    return this.#inner;
  }

  #link(old: number): number {
    if (this.#links[old]! >= 0) return this.#links[old]!;
    const { traceId, spanId } = this.#profile.links[old]!;
    this.#inner.clear();
    if (traceId !== '') this.#inner.bytes(1, Buffer.from(traceId, 'hex'));
    if (spanId !== '') this.#inner.bytes(2, Buffer.from(spanId, 'hex'));
    const index = this.#linkTable.intern(this.#inner);
    this.#links[old] = index;
    return index;
  }

  /** How many of `#attributes` are the sample's. */
  #sampleAttributes(sample: Sample): number {
    let ofProcess = this.#processAttributes.get(sample.process);
    if (!ofProcess) {
      ofProcess = this.#attributesOf(this.#profile.processes[sample.process]!);
      this.#processAttributes.set(sample.process, ofProcess);
    }
    const all = this.#attributes;
    let count = ofProcess.length;
    for (let i = 0; i < count; i++) all[i] = ofProcess[i]!;
    all[count++] = this.#intAttribute('thread.id', sample.tid);
    if (sample.threadName !== '') all[count++] = this.#textAttribute('thread.name', sample.threadName);
    if (sample.cpu >= 0) all[count++] = this.#intAttribute('cpu.logical_number', sample.cpu);
    return count;
  }

  #attributesOf(process: Process): number[] {
    const { pid, parentPid, commandName, cgroupPath, startUnixNano } = process;
    const attributes = [this.#intAttribute('process.pid', pid)];
    for (const [key, value] of readAttributes(process.attributes ?? ''))
      if (isOfSample(key)) attributes.push(this.#textAttribute(key, value));
    if (parentPid > 0) attributes.push(this.#intAttribute('process.parent_pid', parentPid));
    if (commandName !== '') attributes.push(this.#textAttribute('process.command', commandName));
    if (cgroupPath !== '') attributes.push(this.#textAttribute('process.linux.cgroup', cgroupPath));
    if (startUnixNano > 0n) {
      const created = new Date(Number(startUnixNano / 1_000_000n)).toISOString();
      attributes.push(this.#newTextAttribute('process.creation.time', created));
    }
    return attributes;
  }

  #textAttribute(key: string, value: string): number {
    const values = valuesOf(this.#textAttributes, key);
    let index = values.get(value);
    if (index === undefined) {
      index = this.#newTextAttribute(key, value);
      values.set(value, index);
    }
    return index;
  }

  #newTextAttribute(key: string, value: string): number {
    this.#innermost.clear();
    this.#innermost.string(1, value);
    return this.#newAttribute(key);
  }

  #intAttribute(key: string, value: number): number {
    const values = valuesOf(this.#intAttributes, key);
    let index = values.get(value);
    if (index === undefined) {
      this.#innermost.clear();
      if (value !== 0) this.#innermost.uint(3, value);
      // the presence of a zero must be written: it shows the kind of the value
      else this.#innermost.raw(INT_ZERO);
      index = this.#newAttribute(key);
      values.set(value, index);
    }
    return index;
  }

  /** Its value is in the innermost writer. */
  #newAttribute(key: string): number {
    this.#inner.clear();
    this.#inner.uint(1, this.#strings.indexOf(key));
    this.#inner.message(2, this.#innermost);
    return this.#attributeTable.intern(this.#inner);
  }

  #stack(old: number): number {
    if (this.#stacks[old]! >= 0) return this.#stacks[old]!;
    const stack = this.#profile.stacks[old]!;
    const { length } = stack;
    if (length > this.#stackLocations.length) this.#stackLocations = new Int32Array(length * 2);
    const locations = this.#stackLocations;
    const known = this.#locations;
    for (let i = 0; i < length; i++) {
      const location = known[stack[i]!]!;
      locations[i] = location >= 0 ? location : this.#newLocation(stack[i]!);
    }
    this.#inner.clear();
    this.#inner.packedUint(1, locations, length);
    const index = this.#stackTable.intern(this.#inner);
    this.#stacks[old] = index;
    return index;
  }

  #newLocation(old: number): number {
    const location: Location = this.#profile.locations[old]!;
    const mapping = this.#mapping(location.mapping);
    const { lines } = location;
    // their dictionary entries use the shared writers, so they come first
    for (let i = 0; i < lines.length; i++) this.#function(lines[i]!.func);
    const attributes = this.#locationAttributes(location);
    this.#inner.clear();
    this.#inner.uint(1, mapping);
    this.#inner.uint(2, location.address);
    for (let i = 0; i < lines.length; i++) {
      const line = lines[i]!;
      this.#innermost.clear();
      this.#innermost.uint(1, this.#functions[line.func]!);
      this.#innermost.uint(2, line.line);
      this.#innermost.uint(3, line.column);
      this.#inner.message(3, this.#innermost);
    }
    this.#inner.packedUint(4, attributes);
    const index = this.#locationTable.intern(this.#inner);
    this.#locations[old] = index;
    return index;
  }

  #locationAttributes({ frameType, generated, functionStart }: Location): number[] {
    let attributes = this.#frameTypes.get(frameType);
    if (!attributes) {
      attributes = frameType === '' ? [] : [this.#textAttribute('profile.frame.type', frameType)];
      this.#frameTypes.set(frameType, attributes);
    }
    if (generated) return [...attributes, this.#textAttribute(GENERATED_PLACE, generated)];
    return functionStart ? [...attributes, this.#intAttribute(FUNCTION_START, functionStart)] : attributes;
  }

  #mapping(old: number): number {
    if (this.#mappings[old]! >= 0) return this.#mappings[old]!;
    const mapping: Mapping = this.#profile.mappings[old]!;
    const attributes: number[] = [];
    const add = (key: string, value: string): void => {
      if (value !== '') attributes.push(this.#textAttribute(key, value));
    };
    add('process.executable.build_id.gnu', mapping.gnuBuildId);
    add('process.executable.build_id.go', mapping.goBuildId);
    add('process.executable.build_id.htlhash', mapping.fileId);
    const filename = this.#strings.indexOf(mapping.filename);
    this.#inner.clear();
    this.#inner.uint(1, mapping.memoryStart);
    this.#inner.uint(2, mapping.memoryLimit);
    this.#inner.uint(3, mapping.fileOffset);
    this.#inner.uint(4, filename);
    this.#inner.packedUint(5, attributes);
    const index = this.#mappingTable.intern(this.#inner);
    this.#mappings[old] = index;
    return index;
  }

  #function(old: number): number {
    if (this.#functions[old]! >= 0) return this.#functions[old]!;
    this.#inner.clear();
    this.#inner.uint(1, this.#strings.indexOfId(this.#functionStrings.get(old, NAME)));
    this.#inner.uint(2, this.#strings.indexOfId(this.#functionStrings.get(old, SYSTEM_NAME)));
    this.#inner.uint(3, this.#strings.indexOfId(this.#functionStrings.get(old, FILENAME)));
    this.#inner.uint(4, this.#functionStrings.get(old, START_LINE));
    const index = this.#functionTable.intern(this.#inner);
    this.#functions[old] = index;
    return index;
  }
}

function valuesOf<V>(attributes: Map<string, Map<V, number>>, key: string): Map<V, number> {
  let values = attributes.get(key);
  if (!values) {
    values = new Map();
    attributes.set(key, values);
  }
  return values;
}

interface Group {
  process: Process;
  /** Of each profile. */
  samples: Sample[][];
}

/** 2^63, the double next to what the largest value is, is not one itself. */
const int64s = (values: readonly number[]): readonly number[] =>
  values.some((value) => value >= MAX_VALUE) ? values.map((value) => Math.min(value, LARGEST)) : values;

/** The largest double below 2^63. */
const LARGEST = MAX_VALUE - 1024;

/** What resources say of a process: the same for the same. */
const resourceOf = ({
  serviceName,
  containerId,
  executablePath,
  executableName,
  attributes,
}: Process): string =>
  [serviceName, containerId, executablePath, executableName, ofResource(attributes)].join('\0');

/** Attributes without those of samples. */
const ofResource = (attributes = ''): string =>
  mayBeOfSample(attributes)
    ? attributesText([...readAttributes(attributes)].filter(([key]) => !isOfSample(key)))
    : attributes;

interface Window {
  start: bigint;
  duration: bigint;
}

/** The profile's window, made wider where timestamps lie outside: Parca refuses those. */
function windowOf({ timeUnixNano, durationNano, samples }: Profile): Window {
  let [start, end] = [timeUnixNano, timeUnixNano + durationNano];
  // by index, as in all that runs for each sample: an iterator makes an object a step
  for (let i = 0; i < samples.length; i++) {
    const { timestamps } = samples[i]!;
    for (let k = 0; k < timestamps.length; k++) {
      const time = timestamps[k]!;
      if (time < start || start === 0n) start = time;
      if (time > end) end = time;
    }
  }
  return { start, duration: end - start };
}

/** AnyValue { int_value: 0 } */
const INT_ZERO = Uint8Array.of(3 << 3, 0);
