/**
 * pprof's profile.proto, gzipped. Two values a sample: how many, and the CPU time that they stand for, if that is
 * known. Process and thread are labels. The wire format is pprof-format's; see docs/decisions.
 */

import { gzipSync } from 'node:zlib';
import { Profile as Pprof, StringTable } from 'pprof-format';
import { attributesText, readAttributes } from './attributes.ts';
import { processName } from './frame-name.ts';
import { mergeProfiles } from './merge.ts';
import {
  emptyMapping,
  emptyProcess,
  emptyProfile,
  type FrameType,
  type Profile,
  type Sample,
} from './profile.ts';
import { isMarkerName } from './profile-builder.ts';

const KERNEL_FILE = '[kernel.kallsyms]';

type Input = NonNullable<ConstructorParameters<typeof Pprof>[0]>;
type SampleInput = NonNullable<Input['sample']>[number];

export function writePprof(profile: Profile): Uint8Array {
  const strings = new StringTable();
  const s = (text: string): number => strings.dedup(text);
  const pprof = new Pprof({
    stringTable: strings,
    // without a period there is no time, and a default of zeros would show nothing
    sampleType: [
      { type: s(profile.sampleType.type), unit: s(profile.sampleType.unit) },
      ...(hasTime(profile) ? [{ type: s('cpu'), unit: s('nanoseconds') }] : []),
    ],
    defaultSampleType: s(hasTime(profile) ? 'cpu' : profile.sampleType.type),
    periodType: { type: s(profile.periodType.type), unit: s(profile.periodType.unit) },
    period: profile.period,
    timeNanos: profile.timeUnixNano,
    durationNanos: profile.durationNano,
    function: profile.functions.slice(1).map((f, i) => ({
      id: i + 1,
      name: s(f.name),
      systemName: s(f.systemName || f.name),
      filename: s(f.filename),
      startLine: f.startLine,
    })),
    ...writePlaces(profile, s),
    sample: profile.samples.map((sample) => writeSample(profile, sample, s)),
  });
  return gzipSync(pprof.encode());
}

const hasTime = ({ period }: Profile): boolean => period > 0n;

/** Mappings and locations: whether a frame is the kernel's is told by the name of its mapping. */
function writePlaces(profile: Profile, s: (text: string) => number): Pick<Input, 'mapping' | 'location'> {
  const { mappings, locations, stacks } = profile;
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
  // 0 is no ID, and a frame of which nothing is known is a frame
  const hasUnknown = stacks.some((stack) => stack.includes(0));
  const location = locations.map((l, i) => ({
    id: i + 1,
    mappingId: l.mapping === 0 && l.frameType === 'kernel' ? unmapped.id : l.mapping,
    address: l.address,
    // a line of no function names nothing, and pprof-format measures an empty one as absent but writes it
    line: l.lines
      .filter(({ func }) => func !== 0)
      .map(({ func, line, column }) => ({ functionId: func, line, column })),
  }));
  return { mapping, location: hasUnknown ? location : location.slice(1) };
}

/** Those with a place of their own in a profile; others are attributes. */
const OWN_LABELS: ReadonlySet<string> = new Set(['pid', 'tid', 'thread', 'process']);

function writeSample(profile: Profile, sample: Sample, s: (text: string) => number): SampleInput {
  const { pid, attributes = '' } = profile.processes[sample.process]!;
  const label = (key: string, value: string): { key: number; str: number }[] =>
    value === '' ? [] : [{ key: s(key), str: s(value) }];
  return {
    locationId: Array.from(profile.stacks[sample.stack]!, (location) => location + 1),
    value: hasTime(profile) ? [sample.count, BigInt(sample.count) * profile.period] : [sample.count],
    label: [
      { key: s('pid'), num: pid },
      { key: s('tid'), num: sample.tid },
      ...label('thread', sample.threadName),
      ...label('process', processName(profile, sample.process)),
      ...[...readAttributes(attributes)].flatMap(([key, value]) =>
        OWN_LABELS.has(key) ? [] : label(key, value),
      ),
    ],
  };
}

/** perf's names: the kernel's own, and modules in brackets. */
const kernelFile = (name: string): string => {
  if (name === '' || name === 'vmlinux') return KERNEL_FILE;
  return isKernelFile(name) ? name : `[${name}]`;
};

/**
 * @param bytes unpacked, and of a size that pprof-scan.ts let through
 * @throws Error for what is not a pprof file, as far as pprof's own tool would say so
 */
export function readPprof(bytes: Uint8Array): Profile {
  const pprof = Pprof.decode(bytes);
  checkPprof(pprof);
  return new PprofReader(pprof).read();
}

/** Any protobuf message decodes as any other: what every profile has tells this one from OTLP's and from nothing. */
function checkPprof({ stringTable, sampleType, sample }: Pprof): void {
  if (sampleType.length === 0) throw new Error('it does not say what its samples are');
  if (stringTable.strings[0] !== '') throw new Error('its first string is not the empty one');
  if (sample.some(({ value }) => value.length !== sampleType.length))
    throw new Error(`it has samples with other values than the ${sampleType.length} that it declares`);
}

class PprofReader {
  readonly #pprof: Pprof;
  readonly #profile = emptyProfile();
  readonly #mappings = new Map<number, number>([[0, 0]]);
  readonly #functions = new Map<number, number>([[0, 0]]);
  readonly #locations = new Map<number, number>([[0, 0]]);
  readonly #processes = new Map<string, number>();
  readonly #kernelMappings = new Set<number>();

  constructor(pprof: Pprof) {
    this.#pprof = pprof;
  }

  read(): Profile {
    const { mapping, location, sample, sampleType, periodType, period } = this.#pprof;
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
        startLine: Number(f.startLine),
      };
      this.#functions.set(Number(f.id), profile.functions.push(entry) - 1);
    }
    for (const l of location) this.#addLocation(l);
    profile.period = BigInt(period);
    profile.timeUnixNano = BigInt(this.#pprof.timeNanos);
    profile.durationNano = BigInt(this.#pprof.durationNanos);
    if (sampleType[0]) profile.sampleType = this.#valueType(sampleType[0]);
    if (periodType) profile.periodType = this.#valueType(periodType);
    // a difference of two profiles has samples below 0, and a heap has some of 0: neither is a share of anything
    profile.samples = sample.map((one) => this.#sample(one)).filter(({ count }) => count > 0);
    // its files repeat stacks for each set of labels
    return mergeProfiles([profile]);
  }

  #valueType({ type, unit }: { type: number | bigint; unit: number | bigint }): Profile['sampleType'] {
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
    const index =
      this.#profile.locations.push({
        mapping: this.#mappings.get(Number(l.mappingId)) ?? 0,
        address: BigInt(l.address),
        frameType: this.#frameType(l),
        lines: l.line.map((line) => ({
          func: this.#functions.get(Number(line.functionId)) ?? 0,
          line: Number(line.line),
          column: Number(line.column),
        })),
      }) - 1;
    this.#locations.set(Number(l.id), index);
  }

  #frameType({ mappingId, line }: Pprof['location'][number]): FrameType {
    if (this.#kernelMappings.has(Number(mappingId))) return 'kernel';
    const func = this.#functions.get(Number(line[0]?.functionId ?? 0)) ?? 0;
    return isMarkerName(this.#profile.functions[func]!.name) ? 'abort-marker' : 'native';
  }

  #sample(sample: Pprof['sample'][number]): Sample {
    const labels = new Map(
      sample.label.map((l) => [this.#string(l.key), this.#string(l.str) || Number(l.num)]),
    );
    const locations = Uint32Array.from(sample.locationId, (id) => this.#locations.get(Number(id)) ?? 0);
    return {
      stack: locations.length === 0 ? 0 : this.#profile.stacks.push(locations) - 1,
      process: this.#process(
        Number(labels.get('pid') ?? 0),
        String(labels.get('process') ?? ''),
        attributesText(
          [...labels].filter(([key]) => !OWN_LABELS.has(key)).map(([key, value]) => [key, String(value)]),
        ),
      ),
      tid: Number(labels.get('tid') ?? 0),
      threadName: String(labels.get('thread') ?? ''),
      cpu: -1,
      count: Number(sample.value[0] ?? 1),
      timestamps: [],
    };
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

/** User memory that has a name in brackets, from /proc/PID/maps or from this product. */
const USER_AREA = /^\[(vdso|vsyscall|vvar.*|heap|stack.*|anon.*|jit.*|uprobes|unknown)\]$/;
const isKernelFile = (name: string): boolean => /^\[[\w.-]+\]$/.test(name) && !USER_AREA.test(name);
