/**
 * pprof's profile.proto, gzipped. A sample has a value of each type; CPU samples have two, how many and the CPU time that they
 * stand for. Process and thread are labels. The wire format is pprof-format's; see docs/decisions.
 */

import { gzipSync } from 'node:zlib';
import { Profile as Pprof, StringTable } from 'pprof-format';
import { attributesText, readAttributes } from '../model/attributes.ts';
import { placeInName, placeName, processName } from '../model/frame-name.ts';
import { natural } from '../model/json.ts';
import { LinkTable, toSpanId, toTraceId } from '../model/link.ts';
import { mergeProfiles } from '../model/merge.ts';
import {
  emptyMapping,
  emptyProcess,
  emptyProfile,
  type FrameType,
  type Func,
  type Location,
  mainOf,
  type Profile,
  type ProfileFile,
  type ProfileSet,
  type Sample,
} from '../model/profile.ts';
import { isMarkerName } from '../model/profile-builder.ts';
import {
  countsSamples,
  cpuType,
  isCpuType,
  MAX_VALUE,
  NO_PERIOD,
  type ProfileType,
  typeKey,
  typeName,
  type ValueType,
  valueTypeName,
} from '../model/profile-type.ts';
import { ReadBudget } from '../model/read-limits.ts';
import { PROGRAM_LABEL } from '../model/sample-attributes.ts';

const KERNEL_FILE = '[kernel.kallsyms]';

type Input = NonNullable<ConstructorParameters<typeof Pprof>[0]>;
type SampleInput = NonNullable<Input['sample']>[number];
type Strings = (text: string) => number;

/** The profiles as the columns of one file. */
export function writePprof(set: ProfileSet): Uint8Array {
  const { profiles } = set;
  const strings = new StringTable();
  const s = (text: string): number => strings.dedup(text);
  const main = mainOf(set);
  const columns = profiles.flatMap(columnsOf);
  const { periodType, period } = periodOf(set);
  const [start, end] = windowOf(profiles);
  const pprof = new Pprof({
    stringTable: strings,
    sampleType: columns.map(({ type }) => ({ type: s(type.type), unit: s(type.unit) })),
    defaultSampleType: s(columnsOf(main, 0).at(-1)!.type.type),
    periodType: { type: s(periodType.type), unit: s(periodType.unit) },
    period,
    timeNanos: start,
    durationNanos: end - start,
    ...writePlaces(main, s),
    sample: rowsOf(profiles).map((row) => writeSample(main, columns, row, s)),
  });
  return gzipSync(pprof.encode());
}

/** As compilers write names of C++ and Rust, for pprof's own tool to read. */
const MANGLED = /^_{1,2}[ZR][\w.$@]+$/;

/**
 * Where both names are equal, pprof's own tool takes them for one that nobody has read yet, and cuts what is in angle brackets
 * and parentheses out of it: nothing is left of Python's `<module>`.
 * https://github.com/google/pprof/blob/4902fdda35c8/internal/symbolizer/symbolizer.go
 */
function systemNameOf({ name, systemName }: Func): string {
  if (systemName !== name && systemName !== '') return systemName;
  return MANGLED.test(name) ? name : '';
}

/** A column of a file: the values of one of the profiles, times `scale`. */
interface Column {
  type: ValueType;
  profile: number;
  scale: bigint;
}

/** CPU samples have their time beside them; without a period there is no time, and a default of zeros would show nothing. */
function columnsOf({ type }: Profile, profile: number): Column[] {
  const own = { type: type.sampleType, profile, scale: 1n };
  const hasTime = isCpuType(type) && type.period > 0n;
  return hasTime ? [own, { type: type.periodType, profile, scale: type.period }] : [own];
}

/** A file has one: that of CPU samples, which is their time, else one that is every type's. */
function periodOf({ profiles }: ProfileSet): Pick<ProfileType, 'periodType' | 'period'> {
  const cpu = profiles.find(({ type }) => isCpuType(type));
  const { type } = cpu ?? profiles[0]!;
  const isOfAll = profiles.every(
    (other) => valueTypeName(other.type.periodType) === valueTypeName(type.periodType),
  );
  return cpu || isOfAll ? type : NO_PERIOD;
}

/** From the first to the last moment of any of them. */
function windowOf(profiles: readonly Profile[]): [start: bigint, end: bigint] {
  let [start, end] = [0n, 0n];
  for (const { timeUnixNano, durationNano } of profiles) {
    if (timeUnixNano > 0n && (start === 0n || timeUnixNano < start)) start = timeUnixNano;
    if (timeUnixNano + durationNano > end) end = timeUnixNano + durationNano;
  }
  return [start, end];
}

/** A sample with the value of each profile. */
interface Row {
  sample: Sample;
  values: number[];
}

/** Samples of one stack and thread are one row of several columns. */
function rowsOf(profiles: readonly Profile[]): Row[] {
  if (profiles.length === 1)
    return profiles[0]!.samples.map((sample) => ({ sample, values: [sample.value] }));
  const rows = new Map<string, Row>();
  for (const [i, { samples }] of profiles.entries()) {
    for (const sample of samples) {
      const key = `${sample.stack}/${sample.process}/${sample.tid}/${sample.link ?? 0}/${sample.threadName}`;
      let row = rows.get(key);
      if (!row) {
        row = { sample, values: profiles.map(() => 0) };
        rows.set(key, row);
      }
      row.values[i]! += sample.value;
    }
  }
  return [...rows.values()];
}

/** Of a function without a name pprof's own tool would show each address by itself: it is called as it is where there is text only. */
class NamelessFunctions {
  readonly added: Func[] = [];
  readonly #profile: Profile;
  readonly #ids = new Map<string, number>();

  constructor(profile: Profile) {
    this.#profile = profile;
  }

  /** ID of the function of a location without lines; undefined where none is known. */
  idOf({ mapping, functionStart }: Location): number | undefined {
    if (functionStart === undefined) return undefined;
    const name = placeName(this.#profile.mappings[mapping]!.filename, functionStart);
    let id = this.#ids.get(name);
    if (id === undefined) {
      id = this.#profile.functions.length + this.added.length;
      this.added.push({ name, systemName: '', filename: '', startLine: 0 });
      this.#ids.set(name, id);
    }
    return id;
  }
}

/** Functions, mappings and locations: whether a frame is the kernel's is told by the name of its mapping. */
function writePlaces(profile: Profile, s: Strings): Pick<Input, 'function' | 'mapping' | 'location'> {
  const { functions, mappings, locations, stacks } = profile;
  const nameless = new NamelessFunctions(profile);
  const kernel = new Set(locations.filter((l) => l.frameType === 'kernel').map((l) => l.mapping));
  const mapping = mappings.slice(1).map((m, i) => ({
    id: i + 1,
    memoryStart: m.memoryStart,
    memoryLimit: m.memoryLimit,
    fileOffset: m.fileOffset,
    filename: s(kernel.has(i + 1) ? kernelFile(m.filename) : m.filename),
    buildId: s(m.gnuBuildId || m.goBuildId),
    hasFunctions: true,
  }));
  const unmapped = { ...emptyMapping(), id: mappings.length, filename: s(KERNEL_FILE), buildId: 0 };
  if (kernel.has(0)) mapping.push({ ...unmapped, hasFunctions: true });
  // 0 is not an ID, and a frame of which nothing is known is a frame
  const hasUnknown = stacks.some((stack) => stack.includes(0));
  const location = locations.map((l, i) => ({
    id: i + 1,
    mappingId: l.mapping === 0 && l.frameType === 'kernel' ? unmapped.id : l.mapping,
    address: l.address,
    line: linesOf(l, nameless),
  }));
  return {
    function: [...functions.slice(1), ...nameless.added].map((f, i) => ({
      id: i + 1,
      name: s(f.name),
      systemName: s(systemNameOf(f)),
      filename: s(f.filename),
      startLine: f.startLine,
    })),
    mapping,
    location: hasUnknown ? location : location.slice(1),
  };
}

/** A line of no function names nothing, and pprof-format measures an empty one as absent but writes it. */
function linesOf(
  location: Location,
  nameless: NamelessFunctions,
): { functionId: number; line: number; column: number }[] {
  const functionId = nameless.idOf(location);
  if (functionId !== undefined) return [{ functionId, line: 0, column: 0 }];
  return location.lines
    .filter(({ func }) => func !== 0)
    .map(({ func, line, column }) => ({ functionId: func, line, column }));
}

/** Those with a place of their own in a profile; others are attributes. */
const OWN_LABELS: ReadonlySet<string> = new Set(['pid', 'tid', 'thread', 'process']);

/** As integrations of tracers call them; a value that is not an ID is an attribute. */
const [TRACE_LABEL, SPAN_LABEL] = ['trace_id', 'span_id'];

/** A program's labels are called as it calls them, so that Go's tools find them. */
function labelOf(key: string): string {
  const own = key.startsWith(PROGRAM_LABEL) ? key.slice(PROGRAM_LABEL.length) : key;
  return OWN_LABELS.has(own) ? key : own;
}

function writeSample(
  profile: Profile,
  columns: readonly Column[],
  { sample, values }: Row,
  s: Strings,
): SampleInput {
  const { pid, attributes = '' } = profile.processes[sample.process]!;
  const { traceId, spanId } = profile.links[sample.link ?? 0]!;
  const isTaken = (key: string): boolean =>
    (traceId !== '' && key === TRACE_LABEL) || (spanId !== '' && key === SPAN_LABEL);
  const label = (key: string, value: string): { key: number; str: number }[] =>
    value === '' ? [] : [{ key: s(key), str: s(value) }];
  return {
    locationId: Array.from(profile.stacks[sample.stack]!, (location) => location + 1),
    value: columns.map(({ profile: index, scale }) => int64Of(values[index]!, scale)),
    label: [
      { key: s('pid'), num: pid },
      { key: s('tid'), num: sample.tid },
      ...label('thread', sample.threadName),
      ...label('process', processName(profile, sample.process)),
      ...label(TRACE_LABEL, traceId),
      ...label(SPAN_LABEL, spanId),
      ...[...readAttributes(attributes)].flatMap(([key, value]) =>
        OWN_LABELS.has(key) || isTaken(labelOf(key)) ? [] : label(labelOf(key), value),
      ),
    ],
  };
}

/** Exact as long as the product is; what 64 bits can't hold is written as the largest that they can. */
function int64Of(value: number, scale: bigint): number | bigint {
  if (scale === 1n && Number.isSafeInteger(value)) return value;
  const product = BigInt(Math.round(value)) * scale;
  return product > MAX_INT64 ? MAX_INT64 : product;
}

const MAX_INT64 = 2n ** 63n - 1n;

/** perf's names: the kernel's own, and modules in brackets. */
const kernelFile = (name: string): string => {
  if (name === '' || name === 'vmlinux') return KERNEL_FILE;
  return isKernelFile(name) ? name : `[${name}]`;
};

/**
 * A profile for each of a file's types; but of CPU samples and the time that they stand for, samples only.
 *
 * @param bytes unpacked, and of a size that pprof-scan.ts let through
 * @throws Error for what is not a pprof file, as far as pprof's own tool would say so; ReadLimitError
 */
export function readPprof(bytes: Uint8Array, budget = new ReadBudget()): ProfileFile {
  const pprof = Pprof.decode(bytes);
  checkPprof(pprof);
  return new PprofReader(pprof, budget).read();
}

/** More than any profiler has, and few enough that a table of them can be read. */
const MAX_TYPES = 64;
/** Of a sample that a row of several columns becomes. */
const SAMPLE_BYTES = 250;

/** Any protobuf message decodes as any other: what every profile has tells this one from OTLP's and from nothing. */
function checkPprof({ stringTable, sampleType, sample }: Pprof): void {
  if (sampleType.length === 0) throw new Error('it does not say what its samples are');
  if (sampleType.length > MAX_TYPES)
    throw new Error(`it has ${sampleType.length} types of samples: up to ${MAX_TYPES} are read`);
  if (stringTable.strings[0] !== '') throw new Error('its first string is not the empty one');
  const lastName = Math.max(...sampleType.map(({ type, unit }) => Math.max(Number(type), Number(unit))));
  if (lastName >= stringTable.strings.length)
    throw new Error(`it names string ${lastName} and has ${stringTable.strings.length}: it is cut`);
  if (sample.some(({ value }) => value.length !== sampleType.length))
    throw new Error(`it has samples with other values than the ${sampleType.length} that it declares`);
}

class PprofReader {
  readonly #pprof: Pprof;
  readonly #budget: ReadBudget;
  readonly #links = new LinkTable();
  /** Tables of all profiles. */
  readonly #profile: Profile = { ...emptyProfile(), links: this.#links.links };
  readonly #mappings = new Map<number, number>([[0, 0]]);
  readonly #functions = new Map<number, number>([[0, 0]]);
  readonly #locations = new Map<number, number>([[0, 0]]);
  readonly #processes = new Map<string, number>();
  readonly #kernelMappings = new Set<number>();
  readonly #problems = new Map<string, number>();

  constructor(pprof: Pprof, budget: ReadBudget) {
    this.#pprof = pprof;
    this.#budget = budget;
  }

  read(): ProfileFile {
    this.#readTables();
    const { sample, timeNanos, durationNanos } = this.#pprof;
    const types = this.#types();
    const columns = this.#columns(types);
    const tables = { ...this.#profile, timeUnixNano: BigInt(timeNanos), durationNano: BigInt(durationNanos) };
    const profiles = columns.map((column): Profile => ({ ...tables, type: types[column]!, samples: [] }));
    for (const row of sample) this.#addRow(row, columns, profiles);
    // its files repeat stacks for each set of labels
    return { profiles: mergeProfiles(profiles), main: this.#main(types, columns), problems: this.#problems };
  }

  #readTables(): void {
    const { mapping, location } = this.#pprof;
    const profile = this.#profile;
    for (const m of mapping) {
      this.#mappings.set(Number(m.id), profile.mappings.push(this.#mapping(m)) - 1);
      if (isKernelFile(this.#string(m.filename))) this.#kernelMappings.add(Number(m.id));
    }
    for (const f of this.#pprof.function) {
      const [name, systemName] = [this.#string(f.name), this.#string(f.systemName)];
      const entry = {
        name,
        systemName: systemName === name ? '' : systemName,
        filename: this.#string(f.filename),
        startLine: toLine(f.startLine),
      };
      this.#functions.set(Number(f.id), profile.functions.push(entry) - 1);
    }
    for (const l of location) this.#addLocation(l);
  }

  /** Of the columns. What passes between two CPU samples says nothing of other values beside them. */
  #types(): ProfileType[] {
    const { sampleType, periodType, period } = this.#pprof;
    const every = {
      periodType: periodType ? this.#valueType(periodType) : cpuType(0n).periodType,
      period: BigInt(period),
    };
    const types = sampleType.map((one) => ({ sampleType: this.#valueType(one), ...every }));
    if (valueTypeName(every.periodType) !== CPU_TIME) return types;
    return types.map((type) => (isOfCpu(type) ? type : { ...type, ...NO_PERIOD }));
  }

  /** Those that are kept: each type once, and no time that follows from the number of samples. */
  #columns(types: readonly ProfileType[]): number[] {
    const keys = types.map(typeKey);
    const cpu = types.findIndex(isCpuType);
    const time = types.findIndex((type) => typeName(type) === CPU_TIME && isOfCpu(type));
    const isDerived = cpu >= 0 && time >= 0 && this.#isProduct(cpu, time, types[cpu]!.period);
    return types.flatMap((_, column) => {
      if (isDerived && column === time) return [];
      if (keys.indexOf(keys[column]!) === column) return [column];
      this.#note(`another column of ${keys[column]}`, this.#pprof.sample.length);
      return [];
    });
  }

  #isProduct(cpu: number, time: number, period: bigint): boolean {
    return this.#pprof.sample.every(
      ({ value }) => BigInt(int64Of(Number(signed(value[cpu]!)), period)) === BigInt(signed(value[time]!)),
    );
  }

  /** As pprof's own tool chooses: what the file says, else its last column. */
  #main(types: readonly ProfileType[], columns: readonly number[]): number {
    const { defaultSampleType, sampleType } = this.#pprof;
    const named = types.findIndex(({ sampleType: { type } }) => type === this.#string(defaultSampleType));
    const wanted = named >= 0 ? named : sampleType.length - 1;
    const at = columns.indexOf(wanted);
    // its time is not kept where CPU samples are
    return at >= 0
      ? at
      : Math.max(
          0,
          columns.findIndex((column) => isCpuType(types[column]!)),
        );
  }

  /** A heap has values of 0; a difference of two profiles has some below, which are a share of nothing. */
  #addRow(row: Pprof['sample'][number], columns: readonly number[], profiles: readonly Profile[]): void {
    let first: Omit<Sample, 'value' | 'timestamps'> | undefined;
    for (const [i, column] of columns.entries()) {
      const value = Number(signed(row.value[column]!));
      if (value < 0) this.#note('its value is below 0, as in a difference of profiles', 1);
      if (!(value > 0 && value <= MAX_VALUE)) continue;
      if (first) this.#budget.spend('samples', SAMPLE_BYTES);
      first ??= this.#identity(row);
      profiles[i]!.samples.push({ ...first, value, timestamps: [] });
    }
  }

  #note(problem: string, samples: number): void {
    this.#problems.set(problem, (this.#problems.get(problem) ?? 0) + samples);
  }

  #valueType({ type, unit }: { type: number | bigint; unit: number | bigint }): ValueType {
    return { type: this.#string(type), unit: this.#string(unit) };
  }

  #string(index: number | bigint): string {
    return this.#pprof.stringTable.strings[Number(index)] ?? '';
  }

  #mapping(m: Pprof['mapping'][number]): Profile['mappings'][number] {
    const filename = this.#string(m.filename);
    return {
      ...emptyMapping(),
      memoryStart: BigInt(m.memoryStart),
      memoryLimit: BigInt(m.memoryLimit),
      fileOffset: BigInt(m.fileOffset),
      filename: isKernelFile(filename)
        ? filename.slice(1, -1).replace('kernel.kallsyms', 'vmlinux')
        : filename,
      gnuBuildId: this.#string(m.buildId),
    };
  }

  #addLocation(l: Pprof['location'][number]): void {
    const mapping = this.#mappings.get(Number(l.mappingId)) ?? 0;
    const functionStart = this.#functionStart(l, mapping);
    const place = { mapping, address: BigInt(l.address), frameType: this.#frameType(l) };
    if (functionStart !== undefined) {
      const index = this.#profile.locations.push({ ...place, lines: [], functionStart }) - 1;
      this.#locations.set(Number(l.id), index);
      return;
    }
    const index =
      this.#profile.locations.push({
        ...place,
        lines: l.line.map((line) => ({
          func: this.#functions.get(Number(line.functionId)) ?? 0,
          line: toLine(line.line),
          column: toLine(line.column),
        })),
      }) - 1;
    this.#locations.set(Number(l.id), index);
  }

  /** Of a function whose name says nothing but where it is, see {@link NamelessFunctions}. */
  #functionStart({ line }: Pprof['location'][number], mapping: number): number | undefined {
    if (line.length !== 1 || Number(line[0]!.line) !== 0) return undefined;
    const func = this.#profile.functions[this.#functions.get(Number(line[0]!.functionId)) ?? 0]!;
    if (func.filename !== '') return undefined;
    return placeInName(func.name, this.#profile.mappings[mapping]!.filename);
  }

  #frameType({ mappingId, line }: Pprof['location'][number]): FrameType {
    if (this.#kernelMappings.has(Number(mappingId))) return 'kernel';
    const func = this.#functions.get(Number(line[0]?.functionId ?? 0)) ?? 0;
    return isMarkerName(this.#profile.functions[func]!.name) ? 'abort-marker' : 'native';
  }

  /** All of a sample but its values. */
  #identity(sample: Pprof['sample'][number]): Omit<Sample, 'value' | 'timestamps'> {
    const labels = new Map(
      sample.label.map((l) => [this.#string(l.key), this.#string(l.str) || String(signed(l.num))]),
    );
    const link = this.#takeLink(labels);
    const locations = Uint32Array.from(sample.locationId, (id) => this.#locations.get(Number(id)) ?? 0);
    return {
      stack: locations.length === 0 ? 0 : this.#profile.stacks.push(locations) - 1,
      process: this.#process(
        natural(labels.get('pid')),
        labels.get('process') ?? '',
        attributesText([...labels].filter(([key]) => !OWN_LABELS.has(key))),
      ),
      tid: natural(labels.get('tid')),
      threadName: labels.get('thread') ?? '',
      cpu: -1,
      ...(link > 0 && { link }),
    };
  }

  /** Takes the labels that are IDs away. */
  #takeLink(labels: Map<string, string>): number {
    const traceId = toTraceId(labels.get(TRACE_LABEL) ?? '');
    const spanId = toSpanId(labels.get(SPAN_LABEL) ?? '');
    if (traceId !== '') labels.delete(TRACE_LABEL);
    if (spanId !== '') labels.delete(SPAN_LABEL);
    return this.#links.indexOf({ traceId, spanId });
  }

  #process(pid: number, name: string, attributes: string): number {
    const key = `${pid}\0${name}\0${attributes}`;
    let index = this.#processes.get(key);
    if (index === undefined) {
      const process = { ...emptyProcess(), pid, executableName: name };
      index = this.#profile.processes.push(attributes === '' ? process : { ...process, attributes }) - 1;
      this.#processes.set(key, index);
    }
    return index;
  }
}

/** pprof-format reads 64 bits without a sign. */
const signed = (value: number | bigint): number | bigint =>
  typeof value === 'bigint' ? BigInt.asIntN(64, value) : value;

const toLine = (value: number | bigint): number => natural(signed(value));

const CPU_TIME = 'cpu/nanoseconds';
const isOfCpu = (type: ProfileType): boolean => countsSamples(type) || typeName(type) === CPU_TIME;

/** User memory that has a name in brackets, from /proc/PID/maps or from this product. */
const USER_AREA = /^\[(vdso|vsyscall|vvar.*|heap|stack.*|anon.*|jit.*|uprobes|unknown)\]$/;
const isKernelFile = (name: string): boolean => /^\[[\w.-]+\]$/.test(name) && !USER_AREA.test(name);
