/**
 * A profile as an OTLP ExportProfilesServiceRequest (opentelemetry-proto 1.10 and later). The request is written
 * in one pass over the samples: a dictionary entry is made when something first refers to it, so there are no
 * orphans and no duplicates, whatever the profile's own tables hold. Entry 0 of each table is its zero value.
 *
 * Resources are grouped by service, container and executable; process and thread are attributes of the sample.
 * What receivers need of it was tried with the OpenTelemetry Collector and read in the sources of others.
 */
import {
  GENERATED_PLACE,
  type Location,
  type Mapping,
  type Process,
  type Profile,
  type Sample,
} from './profile.ts';
import { ProtoWriter } from './proto-writer.ts';

export interface ScopeInfo {
  scopeName: string;
  scopeVersion: string;
}

const SCHEMA_URL = 'https://opentelemetry.io/schemas/1.37.0';

export function encodeOtlp(profile: Profile, info: ScopeInfo): Uint8Array {
  const steps = encodeOtlpInSteps(profile, info);
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

/** The same in steps of some samples each, for threads that have other things to do in between. */
export const encodeOtlpInSteps = (profile: Profile, info: ScopeInfo): Generator<void, Uint8Array> =>
  new OtlpEncoder(profile, info).encode();

const SAMPLES_PER_STEP = 16;

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

/** A table of the dictionary. Entries are told apart by their bytes; the zero entry has none. */
class Table {
  readonly #field: number;
  readonly #out: ProtoWriter;
  /** Hash of an entry's bytes → the newest entry that has it; `#next` leads to older ones, -1 ends. */
  readonly #newest = new Map<number, number>();
  readonly #next: number[] = [-1];
  /** Where each entry's bytes lie in what was written. */
  readonly #starts: number[];
  readonly #ends: number[];

  constructor(field: number, capacity: number) {
    this.#field = field;
    this.#out = new ProtoWriter(capacity);
    this.#out.bytes(field, new Uint8Array(0));
    this.#starts = [this.#out.length];
    this.#ends = [this.#out.length];
  }

  /** The index of an entry that is known to be new. */
  add(entry: ProtoWriter): number {
    this.#out.message(this.#field, entry);
    this.#next.push(-1);
    this.#starts.push(this.#out.length - entry.length);
    return this.#ends.push(this.#out.length) - 1;
  }

  /** The index of the entry that was just written. */
  intern(entry: ProtoWriter): number {
    if (entry.length === 0) return 0;
    const hash = entry.hash();
    const newest = this.#newest.get(hash) ?? -1;
    for (let index = newest; index >= 0; index = this.#next[index]!) {
      if (this.#out.holds(entry, this.#starts[index]!, this.#ends[index]!)) return index;
    }
    this.#out.message(this.#field, entry);
    this.#newest.set(hash, this.#ends.length);
    this.#next.push(newest);
    this.#starts.push(this.#out.length - entry.length);
    return this.#ends.push(this.#out.length) - 1;
  }

  finish(): Uint8Array {
    return this.#out.finish();
  }
}

class OtlpEncoder {
  readonly #profile: Profile;
  readonly #info: ScopeInfo;
  readonly #strings = new Map<string, number>([['', 0]]);
  readonly #stringTable = new ProtoWriter(16 << 10);
  readonly #mappingTable = new Table(1, 4096);
  readonly #locationTable = new Table(2, 32 << 10);
  readonly #functionTable = new Table(3, 16 << 10);
  readonly #attributeTable = new Table(6, 8192);
  readonly #stackTable = new Table(7, 32 << 10);
  /** Key → value → index, so that a known attribute need not be written again to be found. */
  readonly #textAttributes = new Map<string, Map<string, number>>();
  readonly #intAttributes = new Map<string, Map<number, number>>();
  /** Attributes of a location whose frame is of a type. */
  readonly #frameTypes = new Map<string, number[]>();
  readonly #inner = new ProtoWriter();
  readonly #innermost = new ProtoWriter();
  /** New index of each of the profile's entries, -1 where nothing has referred to it yet. */
  readonly #mappings: Int32Array;
  readonly #locations: Int32Array;
  readonly #functions: Int32Array;
  readonly #stacks: Int32Array;
  readonly #processAttributes = new Map<number, number[]>();
  /** Of the sample that is being written. */
  readonly #attributes: number[] = [];
  /** Of the stack that is being written. */
  readonly #stackLocations: number[] = [];

  constructor(profile: Profile, info: ScopeInfo) {
    this.#profile = profile;
    this.#info = info;
    this.#mappings = new Int32Array(profile.mappings.length).fill(-1);
    this.#locations = new Int32Array(profile.locations.length).fill(-1);
    this.#functions = new Int32Array(profile.functions.length).fill(-1);
    this.#stacks = new Int32Array(profile.stacks.length).fill(-1);
    this.#stringTable.string(5, '');
  }

  *encode(): Generator<void, Uint8Array> {
    const out = new ProtoWriter(256 << 10);
    const window = windowOf(this.#profile);
    for (const [process, samples] of this.#groupByResource()) {
      const resource = new ProtoWriter(16 << 10);
      resource.bytes(1, this.#resource(process));
      resource.bytes(2, yield* this.#scope(samples, window));
      resource.string(3, SCHEMA_URL);
      out.message(1, resource);
    }
    const dictionary = new ProtoWriter(128 << 10);
    dictionary.raw(this.#mappingTable.finish());
    dictionary.raw(this.#locationTable.finish());
    dictionary.raw(this.#functionTable.finish());
    // links: only the zero entry
    dictionary.bytes(4, new Uint8Array(0));
    dictionary.raw(this.#stringTable.finish());
    dictionary.raw(this.#attributeTable.finish());
    dictionary.raw(this.#stackTable.finish());
    out.message(2, dictionary);
    // requests wait in queues that count their bytes: without what the buffer has to spare
    return new Uint8Array(out.finish());
  }

  #groupByResource(): Map<Process, Sample[]> {
    const groups = new Map<string, [Process, Sample[]]>();
    const ofProcesses: (Sample[] | undefined)[] = [];
    const all = this.#profile.samples;
    for (let i = 0; i < all.length; i++) {
      const sample = all[i]!;
      let samples = ofProcesses[sample.process];
      if (!samples) {
        const process = this.#profile.processes[sample.process]!;
        const key = `${process.serviceName}\0${process.containerId}\0${process.executablePath}\0${process.executableName}`;
        const group = groups.get(key) ?? [process, []];
        groups.set(key, group);
        samples = group[1];
        ofProcesses[sample.process] = samples;
      }
      samples.push(sample);
    }
    return new Map(groups.values());
  }

  #resource(process: Process): Uint8Array {
    const resource = new ProtoWriter(256);
    const attributes: [string, string][] = [
      ...Object.entries(this.#profile.host),
      ['service.name', process.serviceName],
      ['container.id', process.containerId],
      ['process.executable.name', process.executableName],
      ['process.executable.path', process.executablePath],
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

  *#scope(samples: Sample[], window: Window): Generator<void, Uint8Array> {
    const profile = yield* this.#profileMessage(samples, window);
    const scope = new ProtoWriter(16 << 10);
    this.#inner.clear();
    this.#inner.string(1, this.#info.scopeName);
    this.#inner.string(2, this.#info.scopeVersion);
    scope.message(1, this.#inner);
    scope.bytes(2, profile);
    scope.string(3, SCHEMA_URL);
    return scope.finish();
  }

  *#profileMessage(samples: Sample[], window: Window): Generator<void, Uint8Array> {
    const { sampleType, periodType, period } = this.#profile;
    const message = new ProtoWriter(16 << 10);
    message.bytes(1, this.#valueType(sampleType));
    for (let i = 0; i < samples.length; i++) {
      message.message(2, this.#sample(samples[i]!));
      if ((i + 1) % SAMPLES_PER_STEP === 0) yield;
    }
    message.fixed64(3, window.start);
    message.uint(4, window.duration);
    message.bytes(5, this.#valueType(periodType));
    message.uint(6, period);
    return message.finish();
  }

  #valueType({ type, unit }: { type: string; unit: string }): Uint8Array {
    const message = new ProtoWriter(16);
    message.uint(1, this.#string(type));
    message.uint(2, this.#string(unit));
    return message.finish();
  }

  #sample(sample: Sample): ProtoWriter {
    // its dictionary entries use the shared writers, so they come first
    const stack = this.#stack(sample.stack);
    const attributes = this.#sampleAttributes(sample);
    this.#inner.clear();
    this.#inner.uint(1, stack);
    this.#inner.packedUint(2, attributes);
    // a sample with one timestamp an event has no values; without timestamps its count is one
    if (sample.timestamps.length === 0) this.#inner.packedUint(4, [sample.count]);
    this.#inner.packedFixed64(5, sample.timestamps);
    return this.#inner;
  }

  #sampleAttributes(sample: Sample): number[] {
    let attributes = this.#processAttributes.get(sample.process);
    if (!attributes) {
      const process = this.#profile.processes[sample.process]!;
      attributes = [this.#intAttribute('process.pid', process.pid)];
      if (process.parentPid > 0) attributes.push(this.#intAttribute('process.parent_pid', process.parentPid));
      if (process.commandName !== '')
        attributes.push(this.#textAttribute('process.command', process.commandName));
      if (process.cgroupPath !== '')
        attributes.push(this.#textAttribute('process.linux.cgroup', process.cgroupPath));
      if (process.startUnixNano > 0n) {
        const created = new Date(Number(process.startUnixNano / 1_000_000n)).toISOString();
        attributes.push(this.#textAttribute('process.creation.time', created));
      }
      this.#processAttributes.set(sample.process, attributes);
    }
    const all = this.#attributes;
    all.length = 0;
    for (let i = 0; i < attributes.length; i++) all.push(attributes[i]!);
    all.push(this.#intAttribute('thread.id', sample.tid));
    if (sample.threadName !== '') all.push(this.#textAttribute('thread.name', sample.threadName));
    if (sample.cpu >= 0) all.push(this.#intAttribute('cpu.logical_number', sample.cpu));
    return all;
  }

  #string(text: string): number {
    let index = this.#strings.get(text);
    if (index === undefined) {
      index = this.#strings.size;
      this.#strings.set(text, index);
      this.#stringTable.string(5, text);
    }
    return index;
  }

  #textAttribute(key: string, value: string): number {
    const values = valuesOf(this.#textAttributes, key);
    let index = values.get(value);
    if (index === undefined) {
      this.#innermost.clear();
      this.#innermost.string(1, value);
      index = this.#newAttribute(key);
      values.set(value, index);
    }
    return index;
  }

  #intAttribute(key: string, value: number): number {
    const values = valuesOf(this.#intAttributes, key);
    let index = values.get(value);
    if (index === undefined) {
      this.#innermost.clear();
      if (value !== 0) this.#innermost.uint(3, value);
      // the presence of a zero must be written: it tells the kind of the value
      else this.#innermost.raw(INT_ZERO);
      index = this.#newAttribute(key);
      values.set(value, index);
    }
    return index;
  }

  /** Its value is in the innermost writer, and was not there with this key before. */
  #newAttribute(key: string): number {
    this.#inner.clear();
    this.#inner.uint(1, this.#string(key));
    this.#inner.message(2, this.#innermost);
    return this.#attributeTable.add(this.#inner);
  }

  #stack(old: number): number {
    if (this.#stacks[old]! >= 0) return this.#stacks[old]!;
    const stack = this.#profile.stacks[old]!;
    const locations = this.#stackLocations;
    locations.length = 0;
    for (let i = 0; i < stack.length; i++) locations.push(this.#location(stack[i]!));
    this.#inner.clear();
    this.#inner.packedUint(1, locations);
    const index = this.#stackTable.intern(this.#inner);
    this.#stacks[old] = index;
    return index;
  }

  #location(old: number): number {
    if (this.#locations[old]! >= 0) return this.#locations[old]!;
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

  #locationAttributes({ frameType, generated }: Location): number[] {
    let attributes = this.#frameTypes.get(frameType);
    if (!attributes) {
      attributes = frameType === '' ? [] : [this.#textAttribute('profile.frame.type', frameType)];
      this.#frameTypes.set(frameType, attributes);
    }
    return generated ? [...attributes, this.#textAttribute(GENERATED_PLACE, generated)] : attributes;
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
    const filename = this.#string(mapping.filename);
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
    const { name, systemName, filename, startLine } = this.#profile.functions[old]!;
    const [nameAt, systemNameAt, filenameAt] = [
      this.#string(name),
      this.#string(systemName),
      this.#string(filename),
    ];
    this.#inner.clear();
    this.#inner.uint(1, nameAt);
    this.#inner.uint(2, systemNameAt);
    this.#inner.uint(3, filenameAt);
    this.#inner.uint(4, startLine);
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
