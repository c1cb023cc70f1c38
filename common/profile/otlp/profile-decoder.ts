/**
 * One profile of an OTLP request, with copies of what it refers to in the request's dictionary. A bad sample is left out, with its
 * reason.
 */
import { bytesTag, IntList, type ProtoReader, varintTag } from '../../protobuf/proto-reader.ts';
import { attributesText, readAttributes } from '../model/attributes.ts';
import { type ColumnProfile, FrameColumns } from '../model/frame-columns.ts';
import { toSpanId, toTraceId } from '../model/link.ts';
import { emptyProcess, emptyProfile, type Process, type Sample } from '../model/profile.ts';
import {
  countsSamples,
  cpuType,
  NO_PERIOD,
  type ProfileType,
  type ValueType,
} from '../model/profile-type.ts';
import { MAX_ENTRIES, MAX_PROCESSES, NO_STACK, type RequestState } from './decode-state.ts';
import { type EntryMap, SequenceTable } from './index-tables.ts';
import { type Attributes, BadSample, type DictionaryReader, number, ROLE, text } from './otlp-dictionary.ts';
import type { ProfileHeader, WireSample } from './otlp-request.ts';
import { REAL_NAME, withoutOwnPeriod } from './own-period.ts';

/** As many as stacks out of files have: see deep-stacks.ts. All of them together are bounded besides. */
const MAX_DEPTH = 65_536;
const MAX_INLINED = 256;
/** A sample may have a deep stack, or refer to what was read before. */
const SAMPLES_PER_STEP = 16;
/** Longest form of a time: `2026-11-21T04:38:42.123456789+00:00`, and some. */
const MAX_TIME_LENGTH = 40;
/** Nanoseconds of later ones, from the year 2554 on, need more than 64 bits. */
const MAX_TIME_MS = 2 ** 64 / 1e6;
/** Bytes of the ID of a trace, the longest one. */
const MAX_ID_LENGTH = 16;

const HOST_KEYS = ['host.name', 'host.id', 'host.arch'] as const;
/** Keys with a place of their own in a profile. */
const OWN_KEYS: ReadonlySet<string> = new Set([
  ...HOST_KEYS,
  'process.pid',
  'process.parent_pid',
  'process.executable.name',
  'process.executable.path',
  'process.command',
  'process.linux.cgroup',
  'process.creation.time',
  'container.id',
  'service.name',
]);

export class ProfileDecoder {
  readonly #state: RequestState;
  readonly #dictionary: DictionaryReader;
  readonly #reader: ProtoReader;
  readonly #resource: Attributes;
  readonly #profile: ColumnProfile;
  /** What the resource says that has no place of its own. */
  readonly #others: ReadonlyMap<string, string>;
  readonly #frames: FrameColumns;
  readonly #processes = new Map<string, number>();
  /** The attributes that say which process it is → process. */
  readonly #processAttributes = new SequenceTable();
  readonly #processesByAttributes: number[] = [];
  /** Ids of strings of processes, so that their key is short whatever a sender makes of them. */
  readonly #processStrings = new Map<string, number>();
  readonly #ofProcess = new IntList();

  constructor(state: RequestState, resource: Attributes) {
    this.#state = state;
    this.#dictionary = state.dictionary;
    this.#reader = state.dictionary.reader;
    this.#resource = resource;
    // as many as are kept: each process goes through them
    this.#others = readAttributes(attributesText(otherAttributes(resource)));
    this.#frames = new FrameColumns(state.strings);
    const { functions: _functions, locations: _locations, ...rest } = emptyProfile();
    this.#profile = { ...rest, frames: this.#frames };
    for (const map of [state.mappings, state.functions, state.locations, state.stacks, state.links])
      map.clear();
  }

  /** In steps between which something else may be done. */
  *decode({ samples, ...header }: ProfileHeader): Generator<void, ColumnProfile> {
    const profile = this.#profile;
    profile.timeUnixNano = header.timeUnixNano;
    profile.durationNano = header.durationNano;
    profile.type = this.#type(header);
    this.#state.areCounts = countsSamples(profile.type);
    for (const key of HOST_KEYS) {
      const value = text(this.#resource, key);
      if (value !== '') profile.host[key] = value;
    }
    for (let i = 0; i < samples.length; i++) {
      this.#state.sample.read(this.#reader, samples.open(this.#reader, i));
      this.#addSample();
      if (i % SAMPLES_PER_STEP === 0) yield;
    }
    return profile;
  }

  /** What counts samples and does not say of what is of CPU time. */
  #type({ sampleType, periodType, period, attributes }: Omit<ProfileHeader, 'samples'>): ProfileType {
    const of = {
      sampleType: this.#valueType(sampleType) ?? cpuType(0n).sampleType,
      periodType: this.#valueType(periodType) ?? NO_PERIOD.periodType,
      period,
    };
    const isUntold = of.periodType.type === '' && of.periodType.unit === '';
    if (countsSamples(of)) return isUntold ? { ...of, periodType: cpuType(0n).periodType } : of;
    return withoutOwnPeriod(of, attributes ? this.#dictionary.textOf(attributes, REAL_NAME) : '');
  }

  #valueType(indices: ProfileHeader['sampleType']): ValueType | undefined {
    if (!indices) return undefined;
    const count = this.#dictionary.count('string');
    const [type = '', unit = ''] = indices.map((index) =>
      index >= 0 && index < count ? this.#dictionary.string(index) : '',
    );
    return { type, unit };
  }

  /** The one that was read. */
  #addSample(): void {
    const { result, sample } = this.#state;
    result.totalSamples++;
    if (this.#looksOdd(sample)) this.#state.oldLooking++;
    try {
      const read = this.#sample(sample);
      if (read.value > 0) this.#profile.samples.push(read);
    } catch (error) {
      if (!(error instanceof BadSample)) throw error;
      this.#state.reject(error.message);
    }
  }

  #looksOdd({ attributes }: WireSample): boolean {
    for (let i = 0; i < attributes.length; i++)
      if (!this.#dictionary.isOddForSample(attributes.values[i]!)) return false;
    return attributes.length > 0;
  }

  #sample({ stack, link, attributes, timestamps, values }: WireSample): Sample {
    const dictionary = this.#dictionary;
    let [tid, threadName, cpu] = [0, '', -1];
    this.#ofProcess.length = 0;
    for (let i = 0; i < attributes.length; i++) {
      const index = attributes.values[i]!;
      const role = dictionary.roleOf(index);
      if (role === ROLE.process) this.#ofProcess.push(index);
      else if (role === ROLE.tid) tid = dictionary.integer(index);
      else if (role === ROLE.threadName) threadName = dictionary.value(index);
      else cpu = dictionary.integer(index);
    }
    const ofStack = this.#stack(stack);
    const process = this.#processOf(this.#ofProcess);
    const ofLink = this.#entry(this.#state.links, link, this.#makeLink);
    const read: Sample = {
      stack: ofStack,
      process,
      tid,
      threadName,
      cpu,
      ...eventsIn(timestamps, values),
    };
    if (ofLink > 0) read.link = ofLink;
    return read;
  }

  #processOf(indices: IntList): number {
    const key = this.#processAttributes.intern(indices);
    let process = this.#processesByAttributes[key];
    if (process === undefined) {
      if (this.#state.processesLeft <= 0)
        throw new BadSample(`more than ${MAX_PROCESSES} processes, or of what is said of them`);
      process = this.#process(this.#dictionary.attributes(indices.view()));
      this.#processesByAttributes[key] = process;
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
    this.#spend(this.#others.size + attributes.size);
    const others = attributesText([...this.#others, ...otherAttributes(attributes)]);
    if (others !== '') process.attributes = others;
    const { parentPid, startUnixNano, ...strings } = process;
    const ids = [strings.executableName, strings.executablePath, strings.commandName, strings.containerId]
      .concat(strings.cgroupPath, strings.serviceName, others)
      .map((value) => this.#stringId(value));
    const key = `${pid}/${parentPid}/${startUnixNano}/${ids.join('/')}`;
    let index = this.#processes.get(key);
    if (index === undefined) {
      this.#state.processesLeft--;
      index = this.#profile.processes.push(process) - 1;
      this.#processes.set(key, index);
    }
    return index;
  }

  #stringId(value: string): number {
    const known = this.#processStrings.get(value);
    if (known !== undefined) return known;
    this.#processStrings.set(value, this.#processStrings.size);
    return this.#processStrings.size - 1;
  }

  #stack(old: number): number {
    return this.#entry(this.#state.stacks, old, this.#makeStack);
  }

  #makeStack(old: number): number {
    const end = this.#dictionary.open('stack', old);
    if (end < 0) throw new BadSample(NO_STACK);
    const indices = this.#readIndices(end);
    if (indices.length > MAX_DEPTH) throw new BadSample(`stack deeper than ${MAX_DEPTH} frames`);
    this.#spend(indices.length);
    const locations = this.#state.room.take(indices);
    for (let i = 0; i < locations.length; i++) {
      const index = locations[i]! | 0;
      const known = this.#state.locations.find(index);
      locations[i] = known >= 0 ? known : this.#location(index);
    }
    this.#spend(this.#frames.inlinedAt(locations));
    return this.#profile.stacks.push(locations) - 1;
  }

  /** Of a Stack. */
  #readIndices(end: number): IntList {
    const indices = this.#dictionary.indices();
    while (this.#reader.at < end) {
      const tag = this.#reader.int32();
      if (tag === bytesTag(1)) indices.pushPacked(this.#reader);
      else if (tag === varintTag(1)) indices.push(this.#reader.int32());
      else this.#reader.skip(tag);
    }
    return indices;
  }

  #location(old: number): number {
    return this.#entry(this.#state.locations, old, this.#makeLocation);
  }

  #makeLocation(old: number): number {
    const reader = this.#reader;
    const end = this.#dictionary.open('location', old);
    if (end < 0) throw new BadSample('location index out of range');
    const attributes = this.#dictionary.indices();
    const { lines } = this.#state;
    lines.length = 0;
    let [mapping, low, high] = [0, 0, 0];
    while (reader.at < end) {
      const tag = reader.int32();
      if (tag === varintTag(1)) mapping = reader.int32();
      else if (tag === varintTag(2)) {
        reader.halves();
        [low, high] = [reader.low, reader.high];
      } else if (tag === bytesTag(3)) lines.read(reader, reader.end());
      else if (tag === bytesTag(4)) attributes.pushPacked(reader);
      else if (tag === varintTag(4)) attributes.push(reader.int32());
      else reader.skip(tag);
    }
    if (lines.length > MAX_INLINED)
      throw new BadSample(`more than ${MAX_INLINED} inlined functions at one location`);
    this.#spend(1 + lines.length + attributes.length);
    const { type: frameType, generated, functionStart } = this.#dictionary.place(attributes);
    mapping = this.#mapping(mapping);
    for (let i = 0; i < lines.length; i++) lines.functions[i] = this.#function(lines.functions[i]!);
    for (let i = 0; i < lines.length; i++)
      this.#frames.addLine(lines.functions[i]!, lines.numbers[i]!, lines.columns[i]!);
    const index = this.#frames.addLocation(mapping, low, high, frameType);
    if (generated) this.#frames.generated.set(index, generated);
    if (functionStart > 0 && lines.length === 0) this.#frames.functionStarts.set(index, functionStart);
    return index;
  }

  #mapping(old: number): number {
    return this.#entry(this.#state.mappings, old, this.#makeMapping);
  }

  #makeMapping(old: number): number {
    const reader = this.#reader;
    const end = this.#dictionary.open('mapping', old);
    if (end < 0) throw new BadSample('mapping index out of range');
    const indices = this.#dictionary.indices();
    let [memoryStart, memoryLimit, fileOffset] = [0n, 0n, 0n];
    let name = 0;
    while (reader.at < end) {
      const tag = reader.int32();
      if (tag === varintTag(1)) memoryStart = reader.bigint();
      else if (tag === varintTag(2)) memoryLimit = reader.bigint();
      else if (tag === varintTag(3)) fileOffset = reader.bigint();
      else if (tag === varintTag(4)) name = reader.int32();
      else if (tag === bytesTag(5)) indices.pushPacked(reader);
      else if (tag === varintTag(5)) indices.push(reader.int32());
      else reader.skip(tag);
    }
    this.#spend(1 + indices.length);
    const attributes = this.#dictionary.attributes(indices.view());
    return (
      this.#profile.mappings.push({
        memoryStart,
        memoryLimit,
        fileOffset,
        filename: this.#dictionary.string(name),
        gnuBuildId: text(attributes, 'process.executable.build_id.gnu'),
        goBuildId: text(attributes, 'process.executable.build_id.go'),
        fileId: text(attributes, 'process.executable.build_id.htlhash'),
      }) - 1
    );
  }

  #function(old: number): number {
    return this.#entry(this.#state.functions, old, this.#makeFunction);
  }

  #makeFunction(old: number): number {
    const reader = this.#reader;
    const end = this.#dictionary.open('func', old);
    if (end < 0) throw new BadSample('function index out of range');
    this.#spend(1);
    let [name, systemName, file, startLine] = [0, 0, 0, 0];
    while (reader.at < end) {
      const tag = reader.int32();
      if (tag === varintTag(1)) name = reader.int32();
      else if (tag === varintTag(2)) systemName = reader.int32();
      else if (tag === varintTag(3)) file = reader.int32();
      else if (tag === varintTag(4)) startLine = reader.number();
      else reader.skip(tag);
    }
    const dictionary = this.#dictionary;
    return this.#frames.addFunction(
      dictionary.stringId(name),
      dictionary.stringId(systemName),
      dictionary.stringId(file),
      startLine,
    );
  }

  #makeLink(old: number): number {
    const reader = this.#reader;
    const end = this.#dictionary.open('link', old);
    if (end < 0) throw new BadSample('link index out of range');
    this.#spend(1);
    let [traceId, spanId] = ['', ''];
    while (reader.at < end) {
      const tag = reader.int32();
      if (tag === bytesTag(1)) traceId = toTraceId(this.#hex());
      else if (tag === bytesTag(2)) spanId = toSpanId(this.#hex());
      else reader.skip(tag);
    }
    return traceId === '' && spanId === '' ? 0 : this.#profile.links.push({ traceId, spanId }) - 1;
  }

  /** Of bytes that may be an ID: longer ones are cut to what is none. */
  #hex(): string {
    const reader = this.#reader;
    const end = reader.end();
    const hex = reader.bytes.toString('hex', reader.at, Math.min(end, reader.at + MAX_ID_LENGTH + 1));
    reader.at = end;
    return hex;
  }

  /** Before the work is done, so that a refusal is cheap. */
  #spend(entries: number): void {
    if (entries > this.#state.entriesLeft)
      throw new BadSample(`the request's stacks, frames and attributes add up to more than ${MAX_ENTRIES}`);
    this.#state.entriesLeft -= entries;
  }

  /** A bad entry costs its work once, however many samples refer to it. */
  #entry(known: EntryMap, old: number, make: (old: number) => number): number {
    if (old === 0) return 0;
    const index = known.find(old);
    if (index >= 0) return index;
    const problem = known.problemOf(old);
    if (problem !== undefined) throw problem;
    try {
      const made = make.call(this, old);
      known.set(old, made);
      return made;
    } catch (error) {
      if (error instanceof BadSample) known.setProblem(old, error);
      throw error;
    }
  }
}

/** What an attribute says that has no place of its own. */
function otherAttributes(attributes: Attributes): [string, string][] {
  const others: [string, string][] = [];
  for (const [key, value] of attributes) if (!OWN_KEYS.has(key)) others.push([key, String(value)]);
  return others;
}

/**
 * What a sample's events add up to, and what each of them adds where that is not 1: without values it is. Without
 * timestamps the values are added up. A value of 0 is one, as of a heap that is freed.
 */
function eventsIn(
  timestamps: bigint[],
  values: number[],
): Pick<Sample, 'value' | 'timestamps'> & { values?: number[] } {
  if (values.length === 0) return { value: timestamps.length || 1, timestamps };
  let [sum, areOnes] = [0, true];
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    if (value < 0) throw new BadSample('a value below 0');
    if (value !== 1) areOnes = false;
    sum += value;
  }
  if (timestamps.length === 0) return { value: sum, timestamps };
  if (values.length === timestamps.length)
    return areOnes ? { value: sum, timestamps } : { value: sum, timestamps, values };
  // one value for all is 1 or their number, or it would not be known whose it is
  if (values.length === 1 && (sum === 1 || sum === timestamps.length))
    return { value: timestamps.length, timestamps };
  throw new BadSample('as many values as timestamps are needed');
}

function toUnixNano(isoTime: string): bigint {
  if (isoTime === '' || isoTime.length > MAX_TIME_LENGTH) return 0n;
  const ms = Date.parse(isoTime);
  return ms >= 0 && ms < MAX_TIME_MS ? BigInt(ms) * 1_000_000n : 0n;
}
